# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small convolution net on device="mps" with an unmodified PyTorch: 1,797 handwritten digits, one fifth held out.

Writes quickstart.png: the loss curve and some test digits with what the net reads in them.
"""
import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from tqdm import tqdm


def say_hello():
    """The first lines that anybody tries."""
    print("torch", torch.__version__, "| mps built:", torch.backends.mps.is_built(), "| available:", torch.backends.mps.is_available())
    print("torch.ones(5, device='mps') * 2 =", torch.ones(5, device="mps") * 2)
    try:
        torch.ones(5, dtype=torch.float64, device="mps")
    except TypeError as error:
        print("TypeError:", error)


def digits():
    """(training images, labels), (test images, labels) on the CPU."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    test = order[: len(order) // 5]
    train = order[len(order) // 5 :]
    return (images[train], labels[train]), (images[test], labels[test])


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 16, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10))


def train(model, images, labels, epochs, batch=64):
    """Adam; returns the loss of every step. Losses stay on the device, so that no step waits for the last: one read an epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    model.train()
    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for _ in progress:
        order = torch.randperm(len(labels), device=images.device)
        for start in range(0, len(labels) - batch + 1, batch):
            chosen = order[start : start + batch]
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        progress.set_postfix(loss=f"{losses[-1].item():.4f}")
    return torch.stack(losses).cpu()


def draw(path, losses, images, labels, read):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(10, 4))
    grid = figure.add_gridspec(3, 10)
    curve = figure.add_subplot(grid[:, :4])
    curve.plot(losses, linewidth=0.8)
    curve.set(xlabel="step", ylabel="loss", yscale="log", title='cross-entropy on device="mps"')
    for i in range(15):
        cell = figure.add_subplot(grid[i // 5, 5 + i % 5])
        cell.imshow(images[i, 0], cmap="gray_r")
        cell.set_title(str(int(read[i])), color="green" if read[i] == labels[i] else "red", fontsize=9)
        cell.axis("off")
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="mps")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--out", default="quickstart.png")
    options = parser.parse_args()
    if options.device == "mps":
        say_hello()
    torch.manual_seed(0)
    (train_images, train_labels), (test_images, test_labels) = digits()
    model = make_net().to(options.device)
    begin = time.perf_counter()
    losses = train(model, train_images.to(options.device), train_labels.to(options.device), options.epochs)
    seconds = time.perf_counter() - begin
    model.eval()
    with torch.no_grad():
        read = model(test_images.to(options.device)).argmax(dim=1).cpu()
    accuracy = (read == test_labels).float().mean().item()
    draw(options.out, losses, test_images, test_labels, read)
    print(f"{len(losses)} steps in {seconds:.1f} s, loss {losses[0]:.3f} -> {losses[-10:].mean():.4f}, test accuracy {accuracy:.2%}; see {options.out}")
    return 0 if accuracy >= 0.97 else 1


if __name__ == "__main__":
    raise SystemExit(main())
