package engine_test

import "testing"

func TestAttacksOnAudiences(t *testing.T) {
	t.Parallel()
	newSiege(t).play(audienceAttacks)
}

var audienceAttacks = []attack{see01, see02, see03, see04, see05, see06, see07}

var see01 = attack{id: "SEE-01", sends: "a letter to alice and bob, edited to be for alice alone, posted to the shared inbox", later: "the next release"}

var see02 = attack{id: "SEE-02", sends: "a stranger's public note that mentions alice and names her followers", later: "the next release"}

var see03 = attack{id: "SEE-03", sends: "boosts, likes and replies that embed somebody else's note with other words", later: "the next release"}

var see04 = attack{id: "SEE-04", sends: "an Update of a note, then its Delete, and reads of every place where its old words can stand", later: "the next release"}

var see05 = attack{id: "SEE-05", sends: "a reply to a post of alice's, for her followers and not for everybody, by somebody whom she does not follow", later: "the next release"}

var see06 = attack{id: "SEE-06", sends: "a block, or a removal from followers or a group, between the choice of recipients and the commit of a post", later: "the next release"}
