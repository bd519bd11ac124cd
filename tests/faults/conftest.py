"""The programs of this folder are run by its tests (``python tests/faults/run.py``); pytest collects the tests alone."""

collect_ignore_glob = ["[!t]*.py", "together.py"]
