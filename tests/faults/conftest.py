"""The tests run the other programs of this folder (``python tests/faults/run.py``); pytest collects the tests alone."""

collect_ignore_glob = ["[!t]*.py", "together.py"]
