"""What the programs share: a few steps of training, with everything that they changed."""


def train(model, optimizer, loss_of, steps=3):
    losses = []
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses + list(model.parameters()) + list(model.buffers())
