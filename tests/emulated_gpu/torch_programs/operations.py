"""Single operations: shapes, types, out= arguments, views, indexing, linear algebra, losses, function transforms."""
import torch
import torch.nn.functional as F
from torch.func import grad, hessian, jacrev, vmap


def case_indexing(device):
    x, rows = torch.randn(6, 5).to(device), torch.tensor([0, 2, 2, 4]).to(device)
    added = torch.zeros(6, 5).to(device).index_put_((rows,), x[:4], accumulate=True)
    masked = added.clone()
    masked[masked > 0] = 7
    scattered = torch.zeros(6, 5).to(device).scatter_add_(0, torch.randint(0, 6, (6, 5)).to(device), x)
    values, order = x.sort(1)
    unique, counts = torch.unique(rows, return_counts=True)
    return [added, masked, scattered, values, order, unique, counts, x.cumsum(0), x.topk(2).indices,
            torch.bincount(rows), x[x > 0], torch.nonzero(x > 0), x.argmax(1), x.median(1).values, x.tril(),
            torch.cat([x, x], 1), x.flip(0), x.roll(1, 0), torch.searchsorted(values[0].contiguous(), x[0]),
            x.max().item(), bool((x > 5).any()), x.kthvalue(2, 1).values, torch.histc(x), torch.cdist(x, x),
            torch.repeat_interleave(rows, 2), torch.take_along_dim(x, order, 1)]


def case_out_arguments(device):
    x = torch.randn(4, 3).to(device)

    def new():
        return torch.empty(0, device=device)

    indices = torch.empty(0, dtype=torch.long, device=device)
    values, part = new(), torch.empty(10, device=device)
    torch.max(x, 1, out=(values, indices))
    torch.sum(x, 1, out=part[:4])
    return [torch.add(x, x, out=new()), torch.mm(x, x.T, out=new()), torch.cat([x, x], out=new()), values, indices,
            part[:4], torch.arange(5, out=torch.empty(0, dtype=torch.long, device=device))]


def case_views_and_types(device):
    x = torch.randn(4, 3).to(device)
    turned = x.clone().t_().unsqueeze_(0)
    small = x.clone().resize_(2, 2)
    return [turned, small, x.t().contiguous(), torch.empty(3, 4, device=device).copy_(x.t()), x.double(), x.bfloat16(),
            x.half() * 2, x.t().clone(), torch.zeros(0, 3, device=device), torch.tensor(3, device=device) + 2.5,
            torch.linspace(0, 1, 5, device=device), torch.eye(3, device=device), x.view(torch.int32), x[1:, ::2]]


def case_complex(device):
    x = torch.randn(8, 8).to(device)
    spectrum = torch.fft.fft(x)
    return [torch.view_as_real(spectrum), torch.fft.irfft(torch.fft.rfft(x)), (spectrum * spectrum.conj()).real.clone(),
            spectrum.conj().imag.clone(), torch.polar(x.abs(), x).abs()]


def case_linear_algebra(device):
    a = torch.randn(4, 4).to(device)
    positive = a @ a.T + 4 * torch.eye(4).to(device)
    return [torch.linalg.cholesky(positive), torch.linalg.inv(positive), torch.linalg.solve(positive, a),
            torch.linalg.norm(a), torch.linalg.eigvalsh(positive), torch.linalg.svdvals(a), torch.det(a),
            torch.einsum("ij,jk->ik", a, a), torch.linalg.qr(a)[1]]


def case_losses(device):
    x = torch.randn(6, 5).to(device).requires_grad_()
    labels, target = torch.randint(0, 5, (6,)).to(device), torch.rand(6, 5).to(device)
    losses = [F.cross_entropy(x, labels, label_smoothing=0.1), F.binary_cross_entropy_with_logits(x, target),
              F.mse_loss(x, target), F.smooth_l1_loss(x, target), F.huber_loss(x, target),
              F.multi_margin_loss(x, labels), F.triplet_margin_loss(x, target, x * 2),
              F.cosine_embedding_loss(x, target, torch.ones(6).to(device)),
              F.gaussian_nll_loss(x, target, target + 1),
              F.ctc_loss(x[:, None].log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2]))]
    sum(losses).backward()
    return losses + [x.grad]


def case_images(device):
    x = torch.randn(2, 4, 8, 8).to(device)
    grid = torch.rand(2, 4, 4, 2).to(device) * 2 - 1
    return [F.interpolate(x, scale_factor=2), F.interpolate(x, size=5, mode="bicubic"), F.unfold(x, 2),
            F.pad(x, (1, 1, 1, 1), mode="reflect"), F.grid_sample(x, grid, align_corners=False), F.avg_pool2d(x, 2),
            F.max_pool2d(x, 2, return_indices=True)[1], F.pixel_shuffle(x, 2), F.instance_norm(x), F.glu(x)]


def case_function_transforms(device):
    w, rows = torch.randn(4).to(device), torch.randn(5, 4).to(device)
    return [vmap(grad(lambda w, x: (w * x).sum().tanh()), (None, 0))(w, rows), jacrev(lambda w: (rows @ w).sin())(w),
            hessian(lambda w: (rows @ w).sin().sum())(w)]


def case_norms(device):
    x = torch.randn(4, 8).to(device).requires_grad_()
    weight = torch.randn(8).to(device).requires_grad_()
    outputs = [F.rms_norm(x, (8,), weight), F.layer_norm(x, (8,), weight), F.normalize(x), x.softmax(1), x.std(0)]
    sum(output.square().sum() for output in outputs).backward()
    with torch.inference_mode():
        return outputs + [x.grad, weight.grad, F.rms_norm(x, (8,), weight)]
