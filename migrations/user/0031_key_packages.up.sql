-- The key packages of the user's devices.
CREATE TABLE mls_key_packages (
    id          uuid PRIMARY KEY,
    ref         bytea NOT NULL UNIQUE, -- the KeyPackageRef of RFC 9420
    device_id   text NOT NULL,
    suite       int NOT NULL,
    content     bytea NOT NULL,
    last_resort boolean NOT NULL, -- it may be claimed again and again, and the public sees it
    not_after   timestamptz NOT NULL,
    state       text NOT NULL CHECK (state IN ('available', 'claimed', 'retired', 'revoked')),
    claimed_by  text CHECK ((claimed_by IS NOT NULL) = (state = 'claimed')),
    claimed_at  timestamptz,
    told_low    boolean NOT NULL DEFAULT false, -- with its claim the user was told that few are left
    created_at  timestamptz NOT NULL,
    CHECK (NOT (last_resort AND state = 'claimed')),
    CHECK (last_resort OR state <> 'retired')
);
CREATE UNIQUE INDEX mls_key_packages_last_resort ON mls_key_packages (device_id, suite) WHERE last_resort AND state = 'available';
CREATE INDEX mls_key_packages_available ON mls_key_packages (device_id, not_after) WHERE state = 'available';
CREATE INDEX mls_key_packages_claimed ON mls_key_packages (claimed_by, claimed_at) WHERE state = 'claimed';
