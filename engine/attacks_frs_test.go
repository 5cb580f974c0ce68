package engine_test

import "testing"

func TestAttacksOnFreshness(t *testing.T) {
	t.Parallel()
	newSiege(t).play(freshnessAttacks)
}

var freshnessAttacks = []attack{frs01, frs02, frs03, frs04, frs05, frs06, frs07}

var frs01 = attack{id: "FRS-01", sends: "two Updates of an actor within a minute that move its inbox, then a post to it", later: "the next release"}

var frs02 = attack{id: "FRS-02", sends: "an Update that announces a new key, seconds after the actor was fetched, then requests by the old and by the new key", later: "the next release"}

var frs03 = attack{id: "FRS-03", sends: "the proven Delete of an account, again, after the account is back", later: "the next release"}

var frs04 = attack{id: "FRS-04", sends: "a Delete of an actor that is gone, with a body, tags and recipients of somebody else's making", later: "the next release"}

var frs05 = attack{id: "FRS-05", sends: "a private key in a file that others may read, that is a link, or that belongs to another account", later: "the next release"}

var frs06 = attack{id: "FRS-06", sends: "NUL, bytes that are no UTF-8 and halves of surrogates in every parameter of every address", later: "the next release"}

var frs07 = attack{id: "FRS-07", sends: "an archive that holds one entry twice", later: "the next release"}
