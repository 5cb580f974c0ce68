package engine_test

import "testing"

func TestAttacksOnCosts(t *testing.T) {
	t.Parallel()
	newSiege(t).play(costAttacks)
}

var costAttacks = []attack{pay01, pay02, pay03, pay04, pay05, pay06, pay07, pay08}

var pay01 = attack{id: "PAY-01", sends: "forged requests that name actors of a large server, then a Follow by an actor of that server whom nobody knows yet", later: "the next release"}

var pay02 = attack{id: "PAY-02", sends: "32 requests of 1 MiB, signed by keys whose server stalls, beside those of a known sender", later: "the next release"}

var pay05 = attack{id: "PAY-05", sends: "activities to the shared inbox that name 1,000 users each and are kept for none", later: "the next release"}

var pay06 = attack{id: "PAY-06", sends: "50 activities of 1 MiB a second by one domain, for a user whose database is down", later: "the next release"}

var pay08 = attack{id: "PAY-08", sends: "a mention of alice every second that names her 2,000 followers, to be forwarded", later: "the next release"}
