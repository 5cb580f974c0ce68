package server_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// Row 19: PostgreSQL cannot serialize the transaction of a commit. The program is answered 503 with
// the time after which to try again. Later the same request succeeds.
func TestRow19ATransactionThatFailsIsAnswered503(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	database := dbtest.DatabaseOf(t, k.store, k.alice)
	dbtest.Run(t, database, `CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END $$`)
	dbtest.Run(t, database, `CREATE TRIGGER collide BEFORE INSERT ON mls_log FOR EACH ROW EXECUTE FUNCTION collide()`)
	commit, next := k.group.Commit(k.device, mlstest.Change{})
	body, key := map[string]any{"commit": commit, "groupInfo": next.Info(k.device)}, header("Idempotency-Key", "the-same")
	if r := k.post(k.device.Identity, k.path+"/commits", body, key).want(t, 503); r.Header.Get("Retry-After") == "" {
		t.Error("nothing tells when to try again")
	}
	var c struct{ Epoch, LastSeq int64 }
	if k.get(k.path, bearerToken(k.tokens[k.device.Identity])).want(t, 200).decode(t, &c); c.Epoch != 0 || c.LastSeq != 0 {
		t.Errorf("after 503 the conversation is %+v", c)
	}
	dbtest.Run(t, database, `DROP TRIGGER collide ON mls_log`)
	r := k.post(k.device.Identity, k.path+"/commits", body, key).want(t, 201)
	if r.decode(t, &c); c.Epoch != 1 || r.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the commit, once it can be stored: %+v, replayed %q", c, r.Header.Get("Idempotent-Replayed"))
	}
}
