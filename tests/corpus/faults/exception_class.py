"""An exception whose class has no name: asking for it raises.

problem: add_relu
expect: failed
"""

class Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class Trouble(Exception, metaclass=Nameless):
    pass


def add_relu(x, y):
    raise Trouble
