DELETE FROM tokens WHERE oidc_subject IS NOT NULL;
ALTER TABLE tokens DROP COLUMN oidc_subject, DROP COLUMN oidc_issuer;
