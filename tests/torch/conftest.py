import pytest


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="all networks, not only the handful that are compared each time")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all"):
        for item in items:
            if item.get_closest_marker("only_with_all"):
                item.add_marker(pytest.mark.skip(reason="needs --all"))


def pytest_configure(config):
    config.addinivalue_line("markers", "only_with_all: takes long, and runs with --all only")
