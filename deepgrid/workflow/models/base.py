"""The base of all models of the workflow language."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from deepgrid.workflow.models.fields import EMPTY_LIST, EnvName, Text


class NotKnown(Exception):
    """A rule read a field that is missing or malformed (see `partial`)."""


class Model(BaseModel):
    """Base of the language: unknown fields are refused, models are frozen, errors do not repeat the input.

    YAML names are camelCase, attributes are snake_case. Values that may be secret are left out of every
    `repr`. `OUTDATED` maps the YAML name of an outdated field to its replacement.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )
    OUTDATED: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:  # hidden from mypy, which would then accept misspelt attributes

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise NotKnown(name)
            return super().__getattr__(name)


class EnvVar(Model):
    """One environment variable."""

    key: EnvName
    """Its name; not PATH, LD_LIBRARY_PATH, nor a variable of the shell itself."""
    value: Text = Field(repr=False)
    """Any text, even empty or with several lines; may be a secret."""


Env = Annotated[tuple[EnvVar, ...], EMPTY_LIST]


@cache
def field_of(model: type[BaseModel], yaml_name: str) -> Any:
    """Return the pydantic field with this YAML name, or None."""
    return next((f for f in model.model_fields.values() if f.alias == yaml_name), None)


@cache
def yaml_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the YAML names of the model's fields."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


@cache
def model_in(annotation: Any) -> type[Model] | None:
    """Return the one model inside `Model | None`, `tuple[Model, ...]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for inner in get_args(annotation) if (found := model_in(inner))), None)


@cache
def is_list(annotation: Any) -> bool:
    """Return whether an annotation is a list, or a list or None."""
    return get_origin(annotation) is tuple or any(map(is_list, get_args(annotation)))
