"""Calls written by hand, for operators that neither torch's test inputs nor the schema alone lead to.

Each function is a source: "call NAME". Kernels do nothing, so only shapes, types and small integers matter; what the host
looks at is made on the CPU and moved.
"""
import torch
from torch import nn

aten = torch.ops.aten
CALLS = {}


def call(function):
    CALLS[function.__name__] = function
    return function


def card(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, device="cuda")


def numbers(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype).cuda()


def half(*shape):
    return card(*shape, dtype=torch.bfloat16)


def coo(*shape):
    """Half of the places are taken, all in order."""
    dense = torch.zeros(shape)
    dense.view(-1)[::2] = 1
    return dense.to_sparse().cuda()


def csr(rows, columns):
    return torch.eye(rows, columns).to_sparse_csr().cuda()


def nested(*lengths, width=8):
    return torch.nested.nested_tensor([torch.ones(length, width) for length in lengths]).cuda()


@call
def scaled_update():
    scale, growth = card(1), numbers(1, dtype=torch.int32)
    aten._amp_update_scale_(scale, growth, card(1), 2.0, 0.5, 2)
    aten._amp_update_scale_.default(scale, growth, torch.zeros(1, device="cuda"), 2.0, 0.5, 2)


@call
def integer_product():
    a, b = card(32, 32, dtype=torch.int8), card(32, 32, dtype=torch.int8)
    aten._int_mm(a, b)
    aten._int_mm.out(a, b, out=card(32, 32, dtype=torch.int32))


@call
def scaled_product():
    a, b = card(32, 32).to(torch.float8_e4m3fn), card(32, 32).to(torch.float8_e4m3fn).t()
    one = card()
    aten._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
    aten._scaled_mm(a, b, one, one, half(32), one, out_dtype=torch.bfloat16)
    aten._scaled_mm.out(a, b, one, one, out_dtype=torch.bfloat16, out=half(32, 32))


@call
def scaled_product_with_recipes():
    a, b = card(32, 32).to(torch.float8_e4m3fn), card(32, 32).to(torch.float8_e4m3fn).t()
    scales = ([card()], [0], [0], [card()], [0], [0])  # one for each whole matrix
    aten._scaled_mm_v2(a, b, *scales, half(32), torch.bfloat16)
    aten._scaled_mm_v2.out(a, b, *scales, half(32), torch.bfloat16, out=half(32, 32))


@call
def scaled_added_product():
    a, b = card(32, 32).to(torch.float8_e4m3fn), card(32, 32).to(torch.float8_e4m3fn).t()
    scales = ([card()], [0], [0], [card()], [0], [0])
    aten._scaled_addmm(half(32, 32), a, b, *scales)
    aten._scaled_addmm_(half(32, 32), a, b, *scales)
    aten._scaled_addmm.out(half(32, 32), a, b, *scales, out=half(32, 32))


@call
def scaled_grouped_products():
    a, b = card(64, 32).to(torch.float8_e4m3fn), card(2, 32, 32).to(torch.float8_e4m3fn).transpose(1, 2)
    ends = numbers(32, 64, dtype=torch.int32)
    aten._scaled_grouped_mm(a, b, card(64), card(2, 32), ends, None, None, torch.bfloat16)
    scales = ([card(64)], [1], [0], [card(2, 32)], [1], [0])  # one for each row
    aten._scaled_grouped_mm_v2(a, b, *scales, ends, None, torch.bfloat16)
    aten._scaled_grouped_mm_v2.out(a, b, *scales, ends, None, torch.bfloat16, out=half(64, 32))


@call
def product_with_dtype():
    a, b = half(4, 4), half(4, 4)
    aten.mm.dtype(a, b, torch.float32)
    aten.mm.dtype_out(a, b, torch.float32, out=card(4, 4))
    aten.addmm.dtype(card(4, 4), a, b, torch.float32)
    aten.addmm.dtype_out(card(4, 4), a, b, torch.float32, out=card(4, 4))
    a, b = half(2, 4, 4), half(2, 4, 4)
    aten.bmm.dtype(a, b, torch.float32)
    aten.bmm.dtype_out(a, b, torch.float32, out=card(2, 4, 4))
    aten.baddbmm.dtype(card(2, 4, 4), a, b, torch.float32)
    aten.baddbmm.dtype_out(card(2, 4, 4), a, b, torch.float32, out=card(2, 4, 4))


@call
def batch_norm_parts():
    x, weight = card(4, 3, 8, 8), card(3)
    aten._native_batch_norm_legit.no_stats(x, weight, weight, True, 0.1, 1e-5)
    aten._native_batch_norm_legit.no_stats_out(x, weight, weight, True, 0.1, 1e-5, out=torch.empty_like(x),
                                               save_mean=card(3), save_invstd=card(3))
    mean, deviation = aten.batch_norm_stats(x, 1e-5)
    counts = card(2)
    both = torch.stack([mean, mean])
    aten.batch_norm_gather_stats_with_counts(x, both, both, card(3), card(3), 0.1, 1e-5, counts)
    aten.batch_norm_elemt(x, weight, weight, mean, deviation, 1e-5)
    aten.batch_norm_backward_elemt(x, x, mean, deviation, weight, mean, mean, numbers(4, dtype=torch.int32))


@call
def batch_norm_into():
    """In torch's own kernel: given cuDNN's, torch 2.11 crashes."""
    x, weight = card(4, 3, 8, 8), card(3)
    with torch.backends.cudnn.flags(enabled=False):
        aten._batch_norm_with_update.out(x, weight, weight, card(3), card(3), 0.1, 1e-5, out=torch.empty_like(x),
                                         save_mean=card(3), save_invstd=card(3), reserve=card(0, dtype=torch.uint8))


@call
def foreach_with_tensor():
    lists = [[card(8), card(8)] for _ in range(3)]
    scalars = torch.tensor([1.0, 2.0])
    for name in ("_foreach_addcdiv", "_foreach_addcmul"):
        getattr(aten, name).Tensor(*lists, scalars)
        getattr(aten, name + "_").Tensor(*lists, scalars)


@call
def fake_quantize():
    x, scale, point = card(4, 4), card(4), card(4)
    aten._fake_quantize_learnable_per_channel_affine(x, scale, point, 0, -128, 127)
    aten._fake_quantize_learnable_per_channel_affine_backward(x, x, scale, point, 0, -128, 127)
    aten._fake_quantize_learnable_per_tensor_affine_backward(x, x, card(1), card(1), -128, 127)
    zero, on = numbers(0, dtype=torch.int32), numbers(1)
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, card(1), zero, on, 0, 255)
    aten._fused_moving_avg_obs_fq_helper(x, on, on, card(1), card(1), card(1), zero, 0.01, 0, 255, 0)


@call
def quantize():
    x = card(4, 4)
    aten.quantize_per_tensor(x, 1.0, 0, torch.quint8)
    aten.quantize_per_tensor.tensor_qparams(x, card(), numbers(0)[0], torch.quint8)
    aten.quantize_per_tensor_dynamic(x, torch.quint8, False)
    aten.quantize_per_channel(x, card(4), numbers(0, 0, 0, 0), 0, torch.quint8)
    aten._make_per_channel_quantized_tensor(card(4, 4, dtype=torch.uint8), card(4, dtype=torch.float64),
                                            numbers(0, 0, 0, 0), 0)


@call
def masked():
    x, mask = card(4, 4), card(4, 4, dtype=torch.bool)
    aten._masked_scale(x, mask.to(torch.uint8), 2.0)
    aten._masked_softmax(x, mask, 1, 2)
    aten._masked_softmax_backward(x, x, mask, 1)


@call
def gated_linear_tangents():
    x, y = card(4, 4), card(4, 2)
    aten.glu_jvp(y, x, x, 1)
    aten.glu_backward_jvp(x, y, x, y, x, 1)


@call
def convolution_parts():
    aten.conv_depthwise3d(card(2, 3, 4, 4, 4), card(3, 1, 2, 2, 2), [2, 2, 2], None, [1, 1, 1], [0, 0, 0], [1, 1, 1])
    x, weight = card(2, 3, 6, 6), card(4, 3, 3, 3)
    y = aten._slow_conv2d_forward(x, weight, [3, 3], None, [1, 1], [0, 0])
    aten._slow_conv2d_backward.grad_input(y, x, weight, [3, 3], [1, 1], [0, 0], grad_input=torch.empty_like(x),
                                          grad_weight=torch.empty_like(weight), grad_bias=card(4))


@call
def connectionist_loss():
    probabilities = torch.randn(6, 2, 5).log_softmax(2).cuda().requires_grad_()
    targets, lengths = numbers(1, 2, 3, 1).view(2, 2), torch.tensor([6, 6])
    loss, alpha = aten._ctc_loss.Tensor(probabilities, targets, lengths.cuda(), numbers(2, 2))
    aten._ctc_loss_backward.Tensor(card(2), probabilities, targets, lengths.cuda(), numbers(2, 2), loss, alpha, 0)
    nn.functional.ctc_loss(probabilities, targets, lengths, torch.tensor([2, 2])).backward()


@call
def flash_attention():
    q, k, v = (half(2, 2, 16, 64).requires_grad_() for _ in range(3))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1).sum().backward()
        nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


@call
def flash_attention_into():
    q = half(2, 16, 2, 64)
    aten._flash_attention_forward_no_dropout_inplace(torch.empty_like(q), q, q, q, None, None, 16, 16, 0.0, False, False)


@call
def efficient_attention():
    q, k, v = (card(2, 2, 16, 64).requires_grad_() for _ in range(3))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1).sum().backward()
        bias = card(2, 2, 16, 16).requires_grad_()
        nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias).sum().backward()


@call
def transformer_fast_path():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).cuda().eval()
    attention = nn.MultiheadAttention(16, 2, batch_first=True).cuda().eval()
    with torch.no_grad():
        layer(card(2, 4, 16))
        attention(*[card(2, 4, 16)] * 3)
    aten._transform_bias_rescale_qkv(card(2, 4, 48), card(48), 2)


@call
def nested_tensors():
    x, padded = nested(2, 3), card(2, 4, 8)
    aten._nested_tensor_size(x), aten._nested_tensor_strides(x), aten._nested_tensor_storage_offsets(x)
    sizes = torch.tensor([[2, 8], [3, 8]])
    aten._nested_from_padded(padded, sizes)
    aten._nested_from_padded_and_nested_example(padded, x)
    aten._nested_tensor_from_mask(padded, card(2, 4, dtype=torch.bool), mask_check=False)
    aten._nested_tensor_from_mask_left_aligned(padded, card(2, 4, dtype=torch.bool))
    aten._nested_view_from_buffer(card(40), sizes, torch.tensor([[8, 1], [8, 1]]), torch.tensor([0, 16]))
    aten.to_padded_tensor(x, 0.0)
    y = nested(2, 3)
    x + y, x * y, x.relu(), x.clone(), x.contiguous(), torch.softmax(x, -1)
    torch.bmm(x, nested(8, 8)), x.transpose(1, 2), nn.functional.linear(x, card(4, 8), card(4)), nn.functional.gelu(x)
    nn.functional.layer_norm(x, (8,), card(8), card(8)), x.add_(y), x.mul_(2.0), x.fill_(1.0), x.unbind()


@call
def nested_gradients():
    x = nested(2, 3)
    aten.linear_backward(x, nested(2, 3, width=4), card(4, 8), [True, True, True])
    aten.matmul_backward(nested(2, 3), nested(2, 3), nested(8, 8), [True, True])
    aten._nested_select_backward(card(2, 8), x, 0, 0)
    aten._nested_tensor_softmax_with_shape(card(2, 2, 4, 4), x)


@call
def jagged():
    offsets = numbers(0, 2, 5)
    padded = aten._jagged_to_padded_dense_forward(card(5, 8), [offsets], [4], 0.0)
    aten._padded_dense_to_jagged_forward(padded, [offsets], 5)


@call
def sparse_softmax():
    x = coo(4, 4).requires_grad_()
    torch.sparse.softmax(x, 1).to_dense().sum().backward()
    torch.sparse.log_softmax(x, 1).to_dense().sum().backward()


@call
def sparse_parts():
    s = coo(4, 4)
    aten._dimI(s), aten._dimV(s), aten._to_dense(s), aten._sparse_broadcast_to(s, [2, 4, 4])
    aten._sparse_coo_tensor_with_dims(2, 0, [4, 4], layout=torch.sparse_coo, device="cuda")
    aten.native_norm(s), aten.native_norm.ScalarOpt_dim_dtype(s, 2, [], False, None)
    aten.sparse_resize_(s.clone(), [4, 4], 2, 0), aten.sparse_resize_and_clear_(s.clone(), [4, 4], 2, 0)
    aten._sparse_mask_projection(s, coo(4, 4))
    aten._to_dense(csr(4, 4))


@call
def sparse_uncoalesced():
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.ones(3, 5), (3, 4, 5),
                                    check_invariants=False).cuda()
    aten._coalesce(twice)
    twice.coalesce(), twice + twice, twice.clone(), twice.to_dense(), twice * 2, torch.sparse.sum(twice, 0)


@call
def sparse_sum_gradient():
    x = coo(4, 4).requires_grad_()
    torch.sparse.sum(x, 0).to_dense().sum().backward()


@call
def sparse_added_product():
    aten.sspaddmm.out(coo(4, 4), coo(4, 4), card(4, 4), out=coo(4, 4))


@call
def compressed_indices():
    rows, columns = numbers(0, 1, 2), numbers(0, 1)
    for is_crow in (True, False):
        aten._validate_compressed_sparse_indices(is_crow, rows, columns, 2, 2, 2)


@call
def sparse_embedding():
    table = nn.Embedding(8, 4, sparse=True).cuda()
    table(numbers(1, 2, 2)).sum().backward()
    torch.optim.SGD(table.parameters(), lr=0.1).step()
    bags = nn.EmbeddingBag(8, 4, mode="sum", sparse=True).cuda()
    bags(numbers(1, 2, 2), numbers(0, 1)).sum().backward()


@call
def compressed():
    s = csr(4, 4)
    s * 2.0, s.to_dense(), s.clone(), s.sum(), s.relu()


@call
def semi_structured():
    dense = half(128, 128)
    packed = aten._sparse_semi_structured_tile(dense, "", True)
    aten._sparse_semi_structured_apply(dense, packed[-1])
    aten._sparse_semi_structured_apply_dense(dense, packed[-1])
    aten._to_sparse_semi_structured(dense)


@call
def compressed_weights():
    aten._weight_int8pack_mm(half(4, 64), card(64, 64, dtype=torch.int8), half(64))


@call
def packed_weights():
    packed = aten._convert_weight_to_int4pack(card(64, 32, dtype=torch.uint8), 2)
    aten._weight_int4pack_mm(half(4, 64), packed, 32, half(2, 64, 2))


@call
def grouped_products():
    a, b = half(2, 32, 32), half(2, 32, 32).transpose(1, 2)
    aten._grouped_mm(a, b)
    rows = half(64, 32)
    aten._grouped_mm(rows, b, numbers(32, 64, dtype=torch.int32))


@call
def counters():
    key = numbers(1, 2, dtype=torch.uint64)
    aten._philox_key_fold_in(key, 1)
    aten._philox_key_split(key, 2)
    aten._philox_normal_(card(4), key)
    aten._philox_uniform_(card(4), key)
    aten._philox_randint_(card(4, dtype=torch.int64), key, 0, 8)


@call
def folded_counters():
    aten._philox_key_fold_in.Tensor(numbers(1, 2, dtype=torch.uint64), numbers(1, dtype=torch.uint64)[0])


@call
def scatter_reductions():
    x, index = card(4, 4), card(4, 4, dtype=torch.int64)
    for reduce in ("add", "multiply"):
        aten.scatter.value_reduce(x, 0, index, 1.0, reduce=reduce)
        aten.scatter_.value_reduce(x, 0, index, 1.0, reduce=reduce)
        aten.scatter.value_reduce_out(x, 0, index, 1.0, reduce=reduce, out=torch.empty_like(x))


@call
def norms_with_dtype():
    x = card(4, 4)
    aten.norm.ScalarOpt_dim_dtype(x, 2, [0], False, dtype=torch.float32)
    aten.norm.dtype_out(x, 2, [0], False, dtype=torch.float32, out=card(4))


@call
def membership():
    truth = card(4, dtype=torch.bool)
    aten.isin.Scalar_Tensor_out(1, card(4), out=card(dtype=torch.bool))
    aten.isin.Tensor_Scalar_out(card(4), 1, out=truth)


@call
def embedding_accumulates():
    """With rows enough that the host sorts indices into temporaries."""
    aten.embedding_dense_backward(card(4096, 8), card(4096, dtype=torch.int64), 16, -1, False)
    aten.embedding_dense_backward(card(4096, 8), card(4096, dtype=torch.int64), 16, -1, True)


@call
def index_put_accumulates():
    x, index = card(64, 8), card(256, dtype=torch.int64)
    aten.index_put_(x, [index], card(256, 8), True)
    aten.index_put_(x, [index], card(256, 8), False)
    aten._index_put_impl_(x, [None, index], card(64, 256), True, True)


@call
def streams():
    card(4).record_stream(torch.cuda.Stream())


@call
def optional_arguments():
    """What torch's test inputs leave out, or give without an element."""
    x = card(4, 4)
    nn.functional.binary_cross_entropy_with_logits(x, x, x, pos_weight=card(4))
    aten.conv_depthwise3d(card(2, 3, 4, 4, 4), card(3, 1, 2, 2, 2), [2, 2, 2], card(3), [1, 1, 1], [0, 0, 0], [1, 1, 1])
    torch.diff(x, prepend=x, append=x)
    aten.log_sigmoid_backward(x, x, x)


@call
def unfolding():
    x = card(2, 3, 8, 8).requires_grad_()
    columns = nn.functional.unfold(x, 2)
    columns.sum().backward()
    nn.functional.fold(columns, (8, 8), 2).sum().backward()


@call
def sorted_places():
    order, values = card(4, 8), card(4, 3)
    torch.searchsorted(order, values)
    torch.searchsorted(order, values, sorter=card(4, 8, dtype=torch.int64))
    torch.searchsorted(order, values, out=card(4, 3, dtype=torch.int64))


@call
def segments():
    x = card(5, 4).requires_grad_()
    for given in ({"lengths": numbers(2, 3)}, {"offsets": numbers(0, 2, 5)}):
        torch.segment_reduce(x, "sum", axis=0, unsafe=True, **given).sum().backward()


@call
def attention_of_many_lengths():
    q, ends = half(10, 2, 64).requires_grad_(), numbers(0, 4, 10, dtype=torch.int32)
    out, sums, seed, offset, _ = aten._flash_attention_forward(q, q, q, ends, ends, 6, 6, 0.0, False, False)
    aten._flash_attention_backward(out, q, q, q, out, sums, ends, ends, 6, 6, 0.0, False, seed, offset)
    q = half(1, 10, 2, 64).requires_grad_()
    out, sums, seed, offset, _, _ = aten._efficient_attention_forward(q, q, q, None, ends, ends, 6, 6, 0.0, 0, True)
    aten._efficient_attention_backward(out, q, q, q, None, out, ends, ends, 6, 6, sums, 0.0, seed, offset, 0, False)


@call
def attention_with_masks():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).cuda().eval()
    attention = nn.MultiheadAttention(16, 2, batch_first=True).cuda().eval()
    x, mask = card(2, 4, 16), card(2, 4, dtype=torch.bool)
    with torch.no_grad():
        layer(x, src_key_padding_mask=mask)
        attention(x, x, x, key_padding_mask=mask)
    q, bias = card(2, 2, 4, 8), card(2, 2, 4, 4)
    aten._scaled_dot_product_attention_math(q, q, q, bias, 0.5, False, bias.bool())


@call
def bags_with_a_largest_index():
    bag = nn.EmbeddingBag(8, 4, mode="max").cuda()
    bag(numbers(1, 2, 2), numbers(0, 1)).sum().backward()
