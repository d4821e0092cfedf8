"""The views, a file each: routes made by ``page_router``. ``page/app.py`` lists them, ``navigation.py`` links them."""
