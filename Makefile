# make demo    install into .venv, train on real handwritten digits, test; nothing but Python and pip is needed
# make test    install into .venv, run the linters and the whole test suite
# make help    this text

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint docs clean

help:
	@sed -n 's/^# //p' Makefile

.venv/demo: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[demo]'
	@touch $@

.venv/dev: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

demo: .venv/demo
	$(BIN)/darkcfg train cfg/res3.cfg --data digits --epochs 20 --set net.warmup_epochs=3
	$(BIN)/darkcfg test

test: .venv/dev lint
	$(BIN)/python -m pytest -n auto

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev
	$(BIN)/python -m docs.generate

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
