package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// playedBy lists the tests for each sentence of docs/security.md. It names a sentence by its first
// words, an attack by its id, and a test as docs/conformance.md does.
var playedBy = []struct{ says, tests string }{
	{"The cached copies of a post that is edited or deleted", "engine/feed.TestRedisForgetsTheWordsOfAChangedPost"},
	{"One that a reader was storing at that moment", "SEE-04 engine/feed.TestAReaderSeesEveryAcknowledgedChange engine/feed.TestNoReadOfAFeedIsStaleWhateverRedisLoses engine/feed.TestNothingStaleIsReadAfterRedisWasAway"},

	// These are the rows of the table "Where data lies", each named by its first cell.
	{"a user's posts, messages, follows", "db/dump.TestEveryTableComesBackAsItWas engine.TestADatabaseThatIsGoneConcernsItsUserOnly TEN-06"},
	{"who knows which actors", "db/instance.TestAcquaintancesMaySayTooMuchNeverTooLittle engine.TestAcquaintancesAreMadeAgainByTheCommandLine"},
	{"activities on their way to several users", "engine/inbox.TestOneRowForOneActivity engine/inbox.TestAUserWhoseDatabaseCannotBeUsedGetsEverythingLater db/instance.TestARowStaysForThoseWhoWait"},
	{"remote actors and their public keys", "db/dump.TestEveryTableComesBackAsItWas engine/token.TestTokensNameTheirUser engine/instance.TestWhatAHostTookIsForgottenAfterAMonth"},
	{"what other servers report", "engine/inbox.TestAReportIsKeptForTheOperator ORG-24"},
	{"private keys", "TEN-12 FRS-05 engine/actor.TestKeysAreMadeOnce"},
	{"all of this in one file", "engine.TestBackupAndRestore"},
	{"policy, profiles", "engine.TestPolicy engine/actor.TestActorDocumentFollowsTheProfile"},
	{"Activities of others are pruned after", "engine.TestPruneBesideAServerRemovesWhatIsOldAndKeepsTheUsersOwn db/user.TestPrunedActivitiesDoNotComeBack"},
	{"Private messages are private by addressing", "PRV-03 engine/server.TestPostsAreReadByTheirRecipients"},

	{"A request to an inbox is refused unless", "SIG-01 SIG-06 SIG-09 SIG-10 SIG-14 engine/inbox.TestASignatureIsTakenWithinAnHourOfTheClock"},
	{"The key is taken from the signer's own document", "SIG-03 SIG-05 engine/actor.TestAKeyMustBeListedByItsOwner"},
	{"When the signer is not the activity's actor", "SIG-02 SIG-34 engine/inbox.TestActivitiesThatArePassedOn"},
	{"A proof that does not hold is refused", "SIG-34 SIG-34b engine/inbox.TestProofsBesideTheActorsOwnSignature"},
	{"What is passed on reaches those that", "engine/inbox.TestAThreadIsCompletedByWhoIsFollowed engine/inbox.TestALetterIsNotPassedOn"},
	{"A private post is stored for those that", "engine/inbox.TestALetterIsNotPassedOn engine/inbox.TestAPrivateAnswerToSomebodyElseDoesNotReachTheAuthorItAnswers engine/inbox.TestAddressing"},
	{"An Update changes a post for the readers", "engine/inbox.TestNewWordsAreForTheirRecipients"},
	{"A post that comes as an id", "NET-19 engine/inbox.TestAPrivatePostThatComesByReferenceReachesItsReaders engine/inbox.TestNobodyLetsAUserAskForWhatItWasNotSent " +
		"engine/inbox.TestAUserWhoWasNotSentAPostDoesNotAskForIt"},
	{"Every activity bears the user's proof", "engine/outbox.TestWhatLeavesKeepsToTheProtocol engine/server.TestProofsAreShownWithWhatTheyCover engine/actor.TestKeysOfProofsRotate"},
	{"After an actor's own Delete nothing", "engine/handler.TestAnActorThatDeletedItselfIsRefused engine/inbox.TestActorsWhoseDeletionIsPassedOn"},
	{"Of a vote in a poll the user's database keeps", "engine/handler.TestNothingKeepsTheNameOfAVoterButTheVote engine/handler.TestVote"},
	{"An activity is passed on to the user's followers only", "engine/inbox.TestForwarding PRV-12"},
	{"Of one sender 30 are passed on at once", "engine/inbox.TestForwardingHasAnEndForEachSender"},
	{"A Delete or Undo of what was passed on within", "engine/inbox.TestForwarding engine/inbox.TestForwardingHasAnEndForEachSender " +
		"engine/inbox.TestWhatTakesBackIsForwardedOnceForWhatWasForwarded engine/inbox.TestWhatTakesBackGoesWhereItWasForwarded"},
	{"An activity of the user's own never waits", "PAY-08b db/user.TestOnesOwnDeliveriesWaitForNoForwardedOnes engine/inbox.TestForwardedActivitiesAreOrderedByNothingOfOthers"},
	{"An activity, object or key of another server's origin", "ORG-01 ORG-02 ORG-04 ORG-10 SIG-05"},
	{"An object that is embedded in an Announce", "ORG-16 ORG-17"},
	{"What somebody does under an id takes nothing", "IDN-02 db/user.TestAnIDThatOneActorTookIsFreeForAnother db/user.TestADeletionKeepsNobodyElsesObjectAway"},
	{"The server of an object says who owns it", "IDN-02 engine/inbox.TestWhoseAnObjectIsSaysItsServer"},
	{"An Undo or Delete by a stranger of something", "IDN-03 engine/inbox.TestWhatStrangersTakeAwayIsChargedToTheirDomain"},
	{"Nobody is shown as an author", "IDN-04 engine/vocab.TestShow engine/vocab.TestWithOwnAuthors"},
	{"A relay is believed no more", "engine/inbox.TestWhatRelaysPassOn engine.TestRelays"},
	{"Only the relay's own actor answers", "engine/inbox.TestAnswersOfRelays"},
	{"Requests to other servers go through one door", "engine.TestEveryPackageKeepsToItsFloorAndDoors engine/transport.TestGuardStandsAtTheDialer engine/transport.TestGuardRefusesAddresses engine/transport.TestGuardURL " +
		"engine/transport.TestGetFollowsRedirects engine/transport.TestGetReadsWithinLimits engine/transport.TestGetHasOneDeadline"},
	{"Bodies are bounded before they are read", "engine/server.TestBodiesAreBoundedTogether engine/server.TestBodiesThatAreSentSlowlyDoNotFillTheMemory PAR-01 PAR-02 PAR-03 PAR-05 PAR-06 PAR-07"},
	{"Connections, bodies and large answers under way", "engine/server.TestNobodyTakesAllConnections engine/server.TestLargeAnswersAreBoundedTogether engine/server.TestAPictureIsNotReadIntoMemory engine/server.TestInboxRefusesWhoComesTooOften engine/actor.TestFetchesAreBudgeted " +
		"engine/inbox.TestStrangersHaveSoMuchStoredADay engine/inbox.TestWhoSendsTooMuchTakesNothingFromOthersOfItsHost"},
	{"Of an actor whose activities concern nobody here nothing is stored", "PAY-04 engine/actor.TestActorsOfNobodyAreInMemoryAlone"},
	{"Of others at most 16 KiB are kept", "PAY-04 engine/vocab.TestReducedActorsAreBounded db/instance.TestUnusedRemoteActorsAreForgotten"},
	{"An acquaintance is charged to the domain", "PAY-04 engine/inbox.TestNewAcquaintancesHaveABudget db/user.TestIdleAcquaintancesGoAfterTwoNights db/user.TestNoAcquaintanceGoesUnderAnArrival"},
	{"The list of users is told over connections of its own", "db/instance.TestWhoIsHereIsToldWhateverElseIsDone"},
	{"A private post does not exist", "PRV-01 PRV-13 engine/server.TestPostsAreReadByTheirRecipients"},
	{"It takes nearly the same time", "engine.BenchmarkPrivateAndUnknownObjects"},
	{"A page shows public posts alone", "engine/server.TestWhatIsNotPublicHasNoPage engine/server.TestTheProfilePageListsPublicPosts engine/server.TestThePageOfAPostShowsItsPublicThread"},
	{"The one way for HTML into it is the sanitizer", "engine/page.TestHostileWordsStayWords engine/page.TestABrowserShowsPagesAndRunsNothing engine/page.TestThePolicyLetsTheStyleThroughAndNothingElse"},
	{"A page has at most 64,000 bytes", "engine/page.TestPagesAreBounded engine/server.TestPagesOfLargePostsAreBounded engine/server.TestPagesLeaveDatabasesToOthers"},
	{"With `federation.secure_mode` users", "engine/server.TestSecureModeShowsUsersOnlyToWhoProvesWhoItIs engine.TestSecureEnginesFederate"},
	{"The instance actor, WebFinger and NodeInfo stay open", "engine/server.TestSecureModeShowsActorsToWhoSigns engine/actor.TestTwoServersDoNotWaitForEachOther MOD-06"},
	{"Followers find in the outbox", "engine/server.TestOutboxShowsWhatTheAskerMaySee PRV-02"},
	{"No cache on the way may keep", "PRV-11"},
	{"What it sends, and what others pass on of it", "MOD-07 engine/handler.TestBlockedActorsAreNotHeard engine/inbox.TestABlockedActorIsNotHeardThroughOthers"},
	{"It is told that the follows end", "engine/outbox.TestABlockEndsTheFollowsAndTellsNoMore"},
	{"Posts that were for it and are not public it can fetch no more", "engine/server.TestSecureModeShowsUsersOnlyToWhoProvesWhoItIs engine/server.TestPostsAreReadByTheirRecipients PRV-02"},
	{"Recipients are chosen when a post is stored", "SEE-06 engine/outbox.TestWhoIsOutAtTheCommitOfAPostDoesNotGetIt engine/outbox.TestWhatIsOwedToAnActorWhoIsShutOutIsNotSent"},
	{"A private message of a stranger waits among the requests", "engine/inbox.TestAStrangersMessageWaitsAmongTheRequests engine/inbox.TestAStrangersWordsComeInNoDisguise engine/server.TestInboxIsItsOwnersAlone"},
	{"A blocked domain or suspended actor is refused before", "MOD-01 MOD-02 MOD-02b engine/inbox.TestWhoIsRefusedIsRefusedInOneVoice engine/inbox.TestThePolicyHoldsForWhatWaited " +
		"engine/inbox.TestBlockedHostsAreRefusedBeforeAnythingIsFetched engine/transport.TestGetAsksTheGate"},
	{"With an allowlist secure mode holds", "MOD-06 engine.TestPolicy"},
	{"A Move takes a follow along only", "ORG-23 engine/handler.TestMove engine/handler.TestAnAccountMovesOnceInThirtyDays"},
	{"It concerns nobody who does not follow the old account", "engine/inbox.TestAMoveMarksOnlyFollowersOfTheOldAccount engine/inbox.TestAMoveForStrangersAloneIsIgnoredAndNobodyIsAsked"},
	{"Tokens are 256 random bits", "engine/token.TestTokensNameTheirUser engine/token.TestTokensCannotBeGuessed engine/server.TestAPIAnswersOnlyToTokens engine/server.TestTokensAreNotLogged"},
	{"They are found by the digest", "engine/token.TestTokensNameTheirUser engine/server.TestATokenIsOfNoUseOnceItIsRevoked engine/server.TestAPIAnswersOnlyToTokens"},
	{"A browser sends none by itself", "engine/server.TestPagesOfNamedOriginsUseTheAPI CLI-08"},
	{"The scope `llm` may write", "TEN-16 engine/outbox.TestAnAssistantWritesInPrivateOnlyToThoseTheUserTalksWith engine/outbox.TestAnAssistantDoesSixtyActionsAnHour"},
	{"Passwords are hashed by argon2id", "engine/token.TestAPasswordIsKnownByItsHash engine/server.TestLoginsAreLogged engine/server.TestBodiesWithPasswordsAreBounded"},
	{"Whatever is wrong with a name or password", "CLI-04 engine/server.TestEveryWrongLoginIsAnsweredAlike engine/server.TestNobodyLocksAUserOut"},
	{"Whoever guesses at a name leaves", "CLI-04 engine/server.TestNobodyLocksAUserOut"},
	{"A session that was made by a password", "engine/server.TestAPasswordMakesASession engine/server.TestASessionOfAPasswordEnds"},
	{"An OpenID provider lets in only people", "engine/server.TestNobodyIsToldWhoIsLinked db/instance.TestAnIdentityIsATokenOfOneUser"},
	{"A login is one browser's, once", "engine/server.TestALoginIsOneBrowsers engine/server.TestAnIdentityMakesASession"},
	{"The provider is reached through the guard", "engine/server.TestAProviderThatIsAway engine/server.TestATokenThatProvesNobodyIsRefused"},
	{"What it owed to other servers is not sent by itself", "engine.TestBackupAndRestore db/dump.TestEveryTableComesBackAsItWas TEN-13"},
	{"An archive holds rows, never statements or paths", "FRS-07 engine/archive.TestNoEntryIsAWayOutOfAFolder engine/archive.TestADamagedArchiveIsRefused"},
	{"That it is yours is not proven", "engine/archive.TestNoEntryIsAWayOutOfAFolder"},
	{"Keys that others on the machine can reach", "TEN-12 FRS-05 engine/actor.TestKeyFilesThatOthersCanReachAreRefused"},
	{"An answer stands under one post", "db/user.TestANoteStandsUnderOnePost"},
	{"Names of members address nobody", "db/user.TestANoteStandsUnderOnePost db/user.TestAudienceInSQL db/user.TestFurtherAudiencesInSQL"},
	{"A type with a space, a line break", "PAR-06 engine/vocab.TestTypeOfADocument"},
	{"No value ends a line of the stream", "PAR-06 engine/server.TestNoValueBreaksTheFramesOfAStream"},
	{"An activity of a type that the engine", "TEN-16 engine/handler.TestUnknownTypesTakeNoNamesOfEvents"},
	{"An address with NUL or broken UTF-8", "FRS-06 engine/server.TestNoAddressTakesWhatIsNoText"},
	{"Once something has left", "engine.TestTheOriginIsForGood"},
	{"The rest is in the log, under the request id", "engine/server.TestTheLogSaysWhatTheOperatorCanDo engine/server.TestARefusedSignatureIsFoundInTheLog engine/server.TestRefusalsTellWhatMayBeKnown PRV-15"},
}

// Every sentence of docs/security.md names tests that exist, or it is removed. The page once
// claimed TEN-12, which was not true.
func TestEverySentenceOfTheSecurityPageIsPlayed(t *testing.T) {
	t.Parallel()
	sentences := securitySentences(t)
	for _, s := range sentences {
		if !slices.ContainsFunc(playedBy, func(p struct{ says, tests string }) bool { return strings.HasPrefix(s, p.says) }) {
			t.Errorf("no test shows this sentence: name one in playedBy, or drop it\n%s", s)
		}
	}
	known := map[string]map[string]source{}
	for _, p := range playedBy {
		if !slices.ContainsFunc(sentences, func(s string) bool { return strings.HasPrefix(s, p.says) }) {
			t.Errorf("the page does not say any more: %s", p.says)
		}
		for _, name := range strings.Fields(p.tests) {
			folder, test, isTest := strings.Cut(name, ".")
			if isTest && known[folder] == nil {
				known[folder] = testsOf(t, filepath.Join("..", folder))
			}
			if _, exists := known[folder][test]; isTest && !exists || !isTest && !isPlayed(name) {
				t.Errorf("%s: there is no %s", p.says, name)
			}
		}
		if p.tests == "" {
			t.Errorf("no test shows: %s", p.says)
		}
	}
}

// isPlayed reports whether the attack with this id is played.
func isPlayed(id string) bool {
	return slices.ContainsFunc(sections, func(s section) bool {
		return slices.ContainsFunc(s.attacks, func(a attack) bool { return a.id == id && a.play != nil })
	})
}

var (
	title = regexp.MustCompile(`\*\*([^*]*[.])\*\*\s*`) // the title of a paragraph; the sentences after it make the same claim
	stop  = regexp.MustCompile(`[.]\s+([A-Z])`)
)

// securitySentences returns the claims of docs/security.md without titles: the rows of "Where data
// lies", and the sentences.
func securitySentences(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "## Where data lies\n")
	text, _, ended := strings.Cut(text, "## Timing of a 404\n")
	if !found || !ended {
		t.Fatal("docs/security.md has other headings")
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "## Guarantees\n", ""), "\n- ", "\n\n")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraph = strings.TrimSpace(paragraph)
		if strings.HasPrefix(paragraph, "|") {
			for _, row := range strings.Split(paragraph, "\n")[2:] {
				all = append(all, strings.TrimPrefix(row, "| "))
			}
			continue
		}
		paragraph = strings.Join(strings.Fields(strings.ReplaceAll(title.ReplaceAllString(paragraph, ""), "**", "")), " ")
		for _, s := range strings.Split(stop.ReplaceAllString(paragraph, ".\n$1"), "\n") {
			if s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

// docs/security.md names the fuzz target of each parser. Every fuzz target of the module is on the
// page, and every target on the page exists.
func TestTheSecurityPageNamesEveryFuzzTarget(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Fuzzing\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile("`(Fuzz\\w+)`").FindAllStringSubmatch(section, -1)
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w*)`)
	targets := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, f := range declared.FindAllStringSubmatch(string(text), -1) {
			targets[f[1]] = true
			if !strings.Contains(section, "`"+f[1]+"`") {
				t.Errorf("the page does not name %s of %s", f[1], path)
			}
		}
		return err
	})
	if err != nil || len(targets) == 0 {
		t.Fatalf("%d targets, %v", len(targets), err)
	}
	for _, n := range named {
		if !targets[n[1]] {
			t.Errorf("the page names %s, and there is none", n[1])
		}
	}
}
