package engine_test

import "testing"

func TestAttacksOnIdentities(t *testing.T) {
	t.Parallel()
	newSiege(t).play(identityAttacks)
}

var identityAttacks = []attack{idn01, idn02, idn03, idn04}

var idn01 = attack{id: "IDN-01", sends: "one actor under several spellings of its id (capitals in the host, `:443`, `HTTPS://`, an IDN host in both forms), of which alice blocks one", later: "the next release"}

var idn02 = attack{id: "IDN-02", sends: "an id that mallory has used, undone, deleted or written under before, in the next activity of somebody else on that server", later: "the next release"}

var idn03 = attack{id: "IDN-03", sends: "Undo and Delete of thousands of invented ids, to many users", later: "the next release"}

var idn04 = attack{id: "IDN-04", sends: "notes whose author is a number, a bare name, or somebody of another server inside a list", later: "the next release"}
