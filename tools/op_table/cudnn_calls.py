"""Calls of cuDNN's operators, written by hand: modules and torch's test inputs reach only some of them."""
import torch
from torch import nn

from calls import aten, call, card, half, numbers


def ints(*values):
    return numbers(*values, dtype=torch.int32)


@call
def cudnn_convolutions():
    x, weight, ones, zeros = card(2, 3, 8, 8), card(4, 3, 3, 3), [1, 1], [0, 0]
    flags = (1, False, False, True)
    aten.cudnn_convolution(x, weight, zeros, ones, ones, *flags)
    aten.cudnn_convolution.out(x, weight, zeros, ones, ones, *flags, out=card(2, 4, 6, 6))
    aten.cudnn_convolution_transpose(x, card(3, 4, 3, 3), zeros, zeros, ones, ones, *flags)
    aten.cudnn_convolution_relu(x, weight, card(4), ones, zeros, ones, 1)
    aten.cudnn_convolution_add_relu(x, weight, card(2, 4, 6, 6), None, card(4), ones, zeros, ones, 1)


@call
def cudnn_normalisation():
    x, three = card(2, 3, 8, 8), card(3)
    out, mean, variance, reserve = aten.cudnn_batch_norm(x, three, three, card(3), card(3), True, 0.1, 1e-5)
    aten.cudnn_batch_norm_backward(x, out, three, card(3), card(3), mean, variance, 1e-5, reserve)


@call
def cudnn_recurrent():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        module = kind(8, 8, 2, dropout=0.5).cuda()
        module(card(3, 2, 8).requires_grad_())[0].sum().backward()
        module.eval()(card(3, 2, 8))
    packed = nn.utils.rnn.pack_padded_sequence(card(3, 2, 8), torch.tensor([3, 2]))
    nn.LSTM(8, 8).cuda()(packed)[0].data.sum().backward()


@call
def cudnn_recurrent_parts():
    aten._cudnn_rnn_flatten_weight([card(32, 8), card(32, 8), card(32), card(32)], 4, 8, 2, 8, 0, 1, False, False)
    aten._cudnn_init_dropout_state(0.5, True, 1, dtype=torch.uint8, device="cuda")


@call
def cudnn_grids():
    x, grid = card(2, 3, 4, 4), card(2, 4, 4, 2)
    aten.cudnn_affine_grid_generator(card(2, 2, 3), 2, 3, 4, 4)
    aten.cudnn_affine_grid_generator_backward(grid, 2, 3, 4, 4)
    aten.cudnn_grid_sampler(x, grid)
    aten.cudnn_grid_sampler_backward(x, grid, x)


@call
def cudnn_attention():
    q, k, v = (half(2, 2, 16, 64).requires_grad_() for _ in range(3))
    aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.1)[0].sum().backward()
    bias = half(2, 2, 16, 16)
    aten._scaled_dot_product_cudnn_attention(q, k, v, bias, True)[0].sum().backward()


@call
def cudnn_connectionist_loss():
    probabilities, targets = card(6, 2, 5).log_softmax(2), torch.tensor([1, 2, 3, 1], dtype=torch.int32)
    aten._cudnn_ctc_loss(probabilities, targets, [6, 6], [2, 2], 0, True, False)
    aten._cudnn_ctc_loss.Tensor(probabilities, targets.cuda(), ints(6, 6), ints(2, 2), 0, True, False)
