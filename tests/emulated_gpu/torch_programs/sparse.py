"""Sparse gradients and sparse tensors."""
import warnings

import torch
from torch import nn
from training import train

warnings.filterwarnings("ignore", message="Sparse")


def case_sgd(device):
    model, ids = nn.Embedding(20, 4, sparse=True).to(device), torch.randint(0, 20, (3, 5)).to(device)
    return train(model, torch.optim.SGD(model.parameters(), 0.1), lambda: model(ids).square().sum())


def case_sparse_adam(device):
    model, ids = nn.Embedding(20, 4, sparse=True).to(device), torch.randint(0, 20, (3, 5)).to(device)
    return train(model, torch.optim.SparseAdam(model.parameters(), 0.1), lambda: model(ids).square().sum())


def case_embedding_bag(device):
    model, ids = nn.EmbeddingBag(20, 4, mode="mean").to(device), torch.randint(0, 20, (3, 5)).to(device)
    return train(model, torch.optim.Adagrad(model.parameters(), 0.1), lambda: model(ids).square().sum())


def case_tensors(device):
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]).to(device), torch.tensor([3.0, 4.0, 5.0]).to(device)
    matrix = torch.sparse_coo_tensor(indices, values, (2, 3))
    twice, dense = (matrix + matrix).coalesce(), torch.randn(3, 2).to(device)
    return [twice.indices(), twice.values(), torch.sparse.mm(matrix, dense), matrix.to_dense(), (matrix * 2).to_dense(),
            torch.sparse.sum(matrix), torch.eye(3).to(device).to_sparse().coalesce().values(),
            matrix.cpu().to_dense(), torch.eye(3).to(device).to_sparse_csr().to_dense()]
