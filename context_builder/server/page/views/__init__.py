"""The views of the page, one file per view: routes made by ``page_router``.

``page/app.py`` lists them, ``navigation.py`` links them.
"""
