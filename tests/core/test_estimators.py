"""Dask collections are noticed where estimators are defined; everything else stays away from the code for them."""

from __future__ import annotations

import dask.bag
import pytest

import similia as sm
from similia.core.estimators import if_lazy
from similia.sources.dask import as_partitions

BAG = dask.bag.from_sequence(["ACGT", "GATT"], npartitions=2)


@if_lazy
def marked(method, self, *args, **kwargs):
    return "instead", method(self, *args, **kwargs)


class Model:
    @marked
    def fit(self, X, y=None, *, ids=None):
        return "method"


@pytest.mark.parametrize("lazy", [BAG, as_partitions(BAG)])
def test_a_method_is_replaced_only_if_an_argument_is_lazy(lazy):
    model = Model()
    assert model.fit(["ACGT"], [0], ids=[1]) == model.fit(X=["ACGT"]) == "method"
    for args, named in [((lazy,), {}), ((["ACGT"], lazy), {}), ((["ACGT"],), {"ids": lazy}), ((), {"X": lazy})]:
        assert model.fit(*args, **named) == ("instead", "method")


def test_a_public_name_is_looked_up_once(monkeypatch):
    found = sm.Nystroem
    monkeypatch.setattr("importlib.import_module", None)
    assert sm.Nystroem is found
    with pytest.raises(AttributeError, match="Nystrom"):
        _ = sm.Nystrom
