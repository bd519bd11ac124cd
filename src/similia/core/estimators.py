"""Parameters of the parts of a list, reached by name as those of a pipeline's steps are."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator


class ListParams(BaseEstimator):
    """Base of what has a list of parts: part i is ``{letter}{i}``, its parameters are ``{letter}{i}__name``."""

    _list: ClassVar[str]  # the parameter that holds the list
    _letter: ClassVar[str]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, also each part by its letter and number, and the parts' parameters."""
        params: dict[str, Any] = super().get_params(deep=False)
        for i, part in enumerate(self._listed() if deep else ()):
            name = f"{self._letter}{i}"
            params[name] = part
            if hasattr(part, "get_params"):
                params.update({f"{name}__{key}": value for key, value in part.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a letter and number replace a part, ``__name`` after it sets a parameter of the part."""
        if self._list in params:
            setattr(self, self._list, params.pop(self._list))
        parts = self._listed()
        names = [f"{self._letter}{i}" for i in range(len(parts))]
        if any(name in params for name in names):
            setattr(self, self._list, [params.pop(name, part) for name, part in zip(names, parts, strict=True)])
        super().set_params(**params)
        return self

    def _listed(self) -> Any:
        """Return the parts; none where the parameter is no list, which those say who use it."""
        parts = getattr(self, self._list)
        return parts if isinstance(parts, list | tuple) else ()
