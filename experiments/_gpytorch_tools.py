"""Exact Gaussian-process regression by gpytorch on a kernel matrix, run in an environment of its own.

    python -P _gpytorch_tools.py MATRIX.npz STEPS

The file holds the kernel matrix ``K`` of all objects, targets ``y``, and positions ``train`` and ``test``. STEPS is the
number of steps of Adam. Matrices of all sizes are solved by Cholesky's factors, because an estimate of the evidence by
conjugate gradients, gpytorch's default from 801 objects on, does not converge. A line of JSON goes to standard output:
mean and standard deviation of each test target, the logarithm of the evidence after the last step, and seconds. Nothing
here imports similia.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

import numpy as np

with contextlib.suppress(ModuleNotFoundError):  # tests collect this file where gpytorch is not installed
    import gpytorch
    import torch

    class Looked(gpytorch.kernels.Kernel):  # type: ignore[misc]
        """Look up the entries of a matrix for positions of objects."""

        def __init__(self, K: torch.Tensor) -> None:
            super().__init__()
            self.K = K

        def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: object) -> torch.Tensor:
            i, j = x1[..., 0].long(), x2[..., 0].long()
            return self.K[i, j] if diag else self.K[i][:, j]

    class Process(gpytorch.models.ExactGP):  # type: ignore[misc]
        """A constant mean and a scaled kernel."""

        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: object, K: torch.Tensor) -> None:
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(Looked(K))

        def forward(self, x: torch.Tensor) -> object:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def main(path: str, steps: int) -> None:
    arrays = np.load(path)
    start = time.perf_counter()
    K, y = torch.tensor(arrays["K"]), torch.tensor(arrays["y"])
    train, test = (torch.tensor(arrays[name])[:, None].double() for name in ("train", "test"))
    known = y[train[:, 0].long()]
    centre, spread = known.mean(), known.std()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Process(train, (known - centre) / spread, likelihood, K).double().train()
    likelihood.train()
    gpytorch.settings.max_cholesky_size._set_value(len(known))
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -evidence(model(train), model.train_targets)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        reached = len(known) * float(evidence(model(train), model.train_targets) - spread.log())  # of y, not scaled
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(test))
    mean, std = found.mean * spread + centre, found.stddev * spread
    scores = {"mean": mean.tolist(), "std": std.tolist(), "evidence": reached, "seconds": time.perf_counter() - start}
    print(json.dumps(scores))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
