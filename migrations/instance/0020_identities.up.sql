-- That a user signs in by an OpenID provider is a token that nobody has the secret of, as a password is: signing in makes
-- sessions of it, which end with it. The columns say who the user is there; for other tokens they are NULL.
ALTER TABLE tokens ADD COLUMN oidc_issuer text, ADD COLUMN oidc_subject text,
    ADD CONSTRAINT tokens_oidc_check CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL));
CREATE UNIQUE INDEX tokens_oidc ON tokens (oidc_issuer, oidc_subject) WHERE oidc_subject IS NOT NULL;
