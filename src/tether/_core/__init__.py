"""The compiled core: one step of the variable-order BDF and everything it needs.

Every file is plain Python that Cython compiles ahead of time; the C types are in the `.pxd` file of
the same name. The files also run uncompiled, under the interpreter; imports that only the
interpreter needs are behind ``if not cython.compiled``.
"""
