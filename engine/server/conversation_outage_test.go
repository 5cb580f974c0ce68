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
	mend := dbtest.FailInserts(t, dbtest.SQL(t, k.store, k.alice), "mls_log", "40001")
	commit, next := k.group.Commit(k.device, mlstest.Change{})
	body, key := map[string]any{"commit": commit, "groupInfo": next.Info(k.device)}, header("Idempotency-Key", "the-same")
	if r := k.post(k.device.Identity, k.path+"/commits", body, key).want(t, 503); r.Header.Get("Retry-After") == "" {
		t.Error("nothing tells when to try again")
	}
	var c struct{ Epoch, LastSeq int64 }
	if k.get(k.path, bearerToken(k.tokens[k.device.Identity])).want(t, 200).decode(t, &c); c.Epoch != 0 || c.LastSeq != 0 {
		t.Errorf("after 503 the conversation is %+v", c)
	}
	mend()
	r := k.post(k.device.Identity, k.path+"/commits", body, key).want(t, 201)
	if r.decode(t, &c); c.Epoch != 1 || r.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the commit, once it can be stored: %+v, replayed %q", c, r.Header.Get("Idempotent-Replayed"))
	}
}
