-- What is stored claims no stamp for a quote that nobody has verified: those of before were not.
UPDATE objects SET raw = raw - 'quoteAuthorization' WHERE raw ? 'quoteAuthorization';
