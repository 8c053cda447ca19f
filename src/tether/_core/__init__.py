"""The compiled core: one step of the variable-order BDF and what it stands on.

Every file is plain Python that Cython compiles ahead of time; the C types are in the
`.pxd` of the same name. Uncompiled, the same files run under the interpreter: the
imports that only the interpreted run needs stand behind ``if not cython.compiled``.
"""
