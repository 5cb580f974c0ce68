package policy

import (
	"fmt"
	"time"
)

// The limits on open reports: in all, from one domain, and from one actor. Open reports are
// counted in the database, so the table has these limits only in the note of the row Reports.
const (
	OpenReports         = 10_000
	OpenReportsOfDomain = 1000
	OpenReportsOfActor  = 750
)

// The limits on the fetches from other servers that fill in one thread: objects in all, objects
// from one domain, and collections or pages of collections.
const (
	FilledObjects     = 50
	FilledOfDomain    = 30
	FilledCollections = 10
)

// SocketsOfUser limits the sockets that a user may have open.
const SocketsOfUser = 10

// The table of budgets. To limit one more thing, add a row here and take a Limiter, a
// SharedLimiter or a Pool from it. The documentation is generated from the rows, and a test checks
// for each row that one payer leaves something to others.
var (
	Connections = newBudget(Budget{Bounds: "connections", Payer: Address, Pool: 8192, Beyond: "closed",
		Note: "for each of the two listeners, and fewer where `ulimit -n` is low: three eighths of it; one of `trusted_proxies` may have all; over one of HTTP/2 32 requests at once"})
	Headers = newBudget(Budget{Bounds: "headers of a request", Payer: Request, Each: "32 KiB, 10 s", Beyond: "431, closed"})
	Body    = newBudget(Budget{Bounds: "a body", Payer: Request, Each: "`limits.body`, 10 s", Beyond: "413; up to 4 MiB more are discarded, then closed"})
	Bodies  = newBudget(Budget{Bounds: "bodies of requests to inboxes under way", Payer: Address, Pool: 64 << 20, Bytes: true, Beyond: "503",
		Note: "for one above `limits.body` the sender's domain pays"})
	Answers = newBudget(Budget{Bounds: "answers above 16 KiB that are being sent", Payer: Address, Pool: 128 << 20, Bytes: true, Beyond: "503",
		Note: "a picture of a profile counts as 128 KiB"})

	InboxRequests = newBudget(Budget{Bounds: "requests to inboxes", Payer: Address, Setting: "limits.inbox_address_rate", Beyond: "429"})
	HostRequests  = newBudget(Budget{Bounds: "requests to inboxes that are proven", Payer: Domain, Setting: "limits.inbox_host_rate", Beyond: "429"})
	ActorRequests = newBudget(Budget{Bounds: "requests to inboxes that are proven", Payer: Sender, Setting: "limits.inbox_actor_rate", Beyond: "429"})
	SecondKnocks  = newBudget(Budget{Bounds: "requests that come again in the other dialect, uncounted", Payer: Sender,
		Rate: Rate{PerSecond: 1.0 / 10, Burst: 1}, Note: "for each body", Beyond: "counted"})

	LargeBodies = newBudget(Budget{Bounds: "requests to inboxes with a body above `limits.body`, of senders who may write to a user in private", Payer: Sender,
		Rate: Rate{PerSecond: 1, Burst: 60}, Note: "up to `limits.mls_body`, in 20 s; all others are answered 413 before the body is read", Beyond: "429"})

	KeyFetches = newBudget(Budget{Bounds: "actors and keys fetched", Payer: Address, Setting: "limits.key_fetch_rate", Per: "domain that is asked", Beyond: "429",
		Note: "half is kept from addresses whose last request could not be proven, and a quarter for those that have sent proven ones of that domain; once proven, the signer's domain pays"})
	KeyWaiters    = newBudget(Budget{Bounds: "requests that wait for another server", Payer: Address, Pool: 256, Beyond: "503"})
	HostWaiters   = newBudget(Budget{Bounds: "requests that wait for one server", Payer: Address, Pool: 8, Per: "domain that is asked", Beyond: "503"})
	ObjectFetches = newBudget(Budget{Bounds: "objects fetched", Payer: Domain, Rate: Rate{PerSecond: 5, Burst: 200}, Per: "domain that is asked", Beyond: "503"})

	OwnUpdates = newBudget(Budget{Bounds: "fetches of an actor that says of itself that it changed", Payer: Domain, Rate: Rate{PerSecond: 3.0 / 60, Burst: 3}, Per: "actor",
		Beyond: "its copy is stale, and asked for again when something is sent to it, at its next request, or after 20 s"})
	Renewals = newBudget(Budget{Bounds: "actors with stale copies that wait to be asked again", Payer: Domain, Pool: 10_000,
		Note: "8 domains are asked at once, 10 s each every 20 s", Beyond: "asked when something is sent to it"})
	AnnouncedKeys = newBudget(Budget{Bounds: "Updates of an actor that its known keys do not verify, for which it is asked", Payer: Address, Rate: Rate{PerSecond: 1.0 / 60, Burst: 1},
		Note: "for each actor", Beyond: "401"})

	Memory = newBudget(Budget{Bounds: "memory for activities that are being read or applied", Payer: Address, Pool: 512 << 20, Bytes: true, Beyond: "503",
		Note: "16 bytes for each byte of a body and of the documents fetched for it, 6 for those above `limits.body`, for which the signer's domain pays; none is held while an unproven request waits for a key"})
	Queue      = newBudget(Budget{Bounds: "activities that wait for users' databases", Payer: Domain, Pool: 50_000, Beyond: "503"})
	QueueBytes = newBudget(Budget{Bounds: "bodies that wait for users' databases, and what was fetched for them", Payer: Domain, Pool: 64 << 20, Bytes: true, Beyond: "503",
		Note: "16 bytes for each byte, and 16 MiB at most, of an activity for users who do not follow its sender, which waits for its turns"})
	Journal = newBudget(Budget{Bounds: "activities that wait in the journal while a user's database cannot be used", Payer: Domain, Pool: 200_000, Per: "user",
		Beyond: "503; its other recipients get it"})
	JournalBytes = newBudget(Budget{Bounds: "bodies that wait in the journal while a user's database cannot be used", Payer: Domain, Pool: 64 << 20, Bytes: true, Per: "user",
		Beyond: "503; its other recipients get it"})

	FanOut = newBudget(Budget{Bounds: "recipients who do not follow the sender, beyond the first of an activity", Payer: Domain,
		Rate: Rate{PerSecond: 20, Burst: 2000}, Note: "kept or ignored; once more for each 128 KiB of the activity; a few of their databases are written at a time, by turns of the domains", Beyond: "429"})
	Rejections      = newBudget(Budget{Bounds: "Rejects of Follows for which there is no room among those that wait for a user", Payer: Domain, Rate: Daily(1000), Beyond: "the Follow is ignored"})
	ActorRejections = newBudget(Budget{Bounds: "Rejects of Follows for which there is no room among those that wait for a user", Payer: Sender, Rate: Daily(1), Note: "for each user", Beyond: "the Follow is ignored"})
	Deletions       = newBudget(Budget{Bounds: "Deletes of an account that is gone, which need no signature of it", Payer: Sender,
		Rate: Rate{PerSecond: 1 / time.Hour.Seconds(), Burst: 1}, Note: "the account itself pays; one that is refused does not count", Beyond: "202, and dropped"})
	StrangersStorage = newBudget(Budget{Bounds: "storage for users who do not follow the sender", Payer: Domain, Rate: Daily(256 << 20), Bytes: true,
		Note: "413 if the copies of one activity would take more; a Block, an Undo and a Delete take effect beyond it, and are not stored", Beyond: "429"})
	FollowersStorage = newBudget(Budget{Bounds: "storage for a user who follows the sender", Payer: Domain, Rate: Daily(2 << 30), Bytes: true,
		Note: "for each user; it is 400,000 posts of 5 KiB, more than the largest server's users write in public a day: an honest one does not meet it", Beyond: "429; other recipients get it"})
	NewActors = newBudget(Budget{Bounds: "documents of actors that nobody here knew yet", Payer: Domain, Rate: Daily(64 << 20), Bytes: true,
		Note: "those that concern nobody here are not stored", Beyond: "429"})
	NewAcquaintances = newBudget(Budget{Bounds: "users that an actor has to do with for the first time, who do not follow the sender", Payer: Domain, Rate: Daily(50_000), Beyond: "429"})
	NewVoters        = newBudget(Budget{Bounds: "users that a voter has to do with for the first time, by a vote that a group announces", Payer: Sender, Rate: Daily(100_000),
		Note: "the group pays, also for users who follow it", Beyond: "ignored, and counted as `group_budget`"})
	Vouching = newBudget(Budget{Bounds: "activities of others that are passed on without a proof, for which their server is asked", Payer: Domain,
		Rate: Rate{PerSecond: 1, Burst: 100}, Beyond: "429"})
	TakenAway = newBudget(Budget{Bounds: "ids that strangers undid or deleted before they came, remembered for 12 h or more and until the next start", Payer: Domain, Pool: 50_000,
		Beyond: "not remembered"})
	Rivals = newBudget(Budget{Bounds: "objects whose id another actor of the same server uses here, about which that server is asked", Payer: Sender,
		Rate: Rate{PerSecond: 1.0 / 60, Burst: 10}, Beyond: "ignored"})
	OpenRivals   = newBudget(Budget{Bounds: "such questions, and their answers for a minute", Payer: Domain, Pool: 100, Beyond: "ignored"})
	GroupFetches = newBudget(Budget{Bounds: "objects fetched for a group that users follow", Payer: Sender, Rate: Rate{PerSecond: 2, Burst: 500},
		Note: "of others' posts that it announces (FEP-1b12); votes cost none", Beyond: "ignored, and counted as `group_budget`"})
	RelayFetches = newBudget(Budget{Bounds: "posts fetched for a relay", Payer: Sender, Rate: Rate{PerSecond: 2, Burst: 200}, Beyond: "passed over"})
	Reports      = newBudget(Budget{Bounds: "reports for the operator", Payer: Domain, Rate: Rate{PerSecond: 1.0 / 60, Burst: 100}, Beyond: "429",
		Note: fmt.Sprintf("at most %d open ones, of one actor %d; of %d in all the domain that has most gives way to others", OpenReportsOfDomain, OpenReportsOfActor, OpenReports)})

	ActorForwards  = newBudget(Budget{Bounds: "activities forwarded to users' followers", Payer: Sender, Rate: Rate{PerSecond: 1.0 / 60, Burst: 30}, Beyond: "not forwarded"})
	DomainForwards = newBudget(Budget{Bounds: "activities forwarded to users' followers", Payer: Domain, Rate: Rate{PerSecond: 1, Burst: 300}, Beyond: "not forwarded"})

	ForwardedDeliveries = newBudget(Budget{Bounds: "deliveries of activities forwarded to a user's followers", Payer: Domain, Rate: Rate{PerSecond: 10, Burst: 20_000}, Per: "user",
		Note: "an activity counts as 5,000 at most; they go out when nothing of users' own waits", Beyond: "not forwarded"})

	Comparisons   = newBudget(Budget{Bounds: "comparisons of followers (FEP-8fcf)", Payer: Sender, Rate: Rate{PerSecond: 1.0 / 60, Burst: 3}, Beyond: "passed over"})
	FollowerLists = newBudget(Budget{Bounds: "lists of followers fetched to compare", Payer: Sender, Rate: Rate{PerSecond: 1 / time.Hour.Seconds(), Burst: 1}, Beyond: "passed over"})
	UndoneFollows = newBudget(Budget{Bounds: "follows taken back after a comparison", Payer: Domain, Rate: Rate{PerSecond: 1.0 / 60, Burst: 100}, Beyond: "passed over"})
	Offers        = newBudget(Budget{Bounds: "comparisons of followers that wait, two being made at once", Payer: Domain, Pool: 1000, Beyond: "passed over"})

	StoredHosts = newBudget(Budget{Bounds: "names of hosts of which dialect or software is written down", Payer: Domain, Rate: Daily(5000), Beyond: "not remembered"})

	DeliveryAttempts = newBudget(Budget{Bounds: "attempts at deliveries under way", Payer: Domain, Pool: 128, Beyond: "the next one waits",
		Note: "the domain of the inbox pays; `delivery.concurrency` says another size; 16 more are for users of this server"})
	HeldDeliveries = newBudget(Budget{Bounds: "deliveries in memory", Payer: Domain, Pool: 8192, Beyond: "the others wait in the users' databases",
		Note: "the domain of the inbox pays"})

	Documents = newBudget(Budget{Bounds: "a document", Payer: Request,
		Each: "64 levels, 50,000 values; 1,000 addressed, 256 tags, 64 attachments, 50 options; an id of 1 KiB; content of 128 KiB (an Article: 512 KiB), name and summary of 4 KiB", Beyond: "400"})
	StrangersReads = newBudget(Budget{Bounds: "reads of users' databases by strangers under way", Payer: Address, Pool: 256, Beyond: "503",
		Note: "they use a quarter of the connections, two for each user, and wait 2 s for one, by turns of the payers"})
	StrangersOpens = newBudget(Budget{Bounds: "users' databases opened for strangers", Payer: Address, Rate: Rate{PerSecond: 20, Burst: 20}, Per: "process", Beyond: "503"})

	Logins     = newBudget(Budget{Bounds: "attempts at passwords, wrong tokens of which a session is asked for, and steps of logins by an OpenID provider", Payer: Address, Rate: Rate{PerSecond: 20.0 / 60, Burst: 20}, Beyond: "429"})
	NameLogins = newBudget(Budget{Bounds: "attempts at passwords of one name, whether there is such a user or not", Payer: Address, Rate: Rate{PerSecond: 10.0 / 60, Burst: 60}, Per: "name",
		Note: "half is kept for addresses from which the user has signed in since the start", Beyond: "429"})
	LoginBodies = newBudget(Budget{Bounds: "bodies of requests with passwords under way", Payer: Address, Pool: 4 << 20, Bytes: true, Beyond: "503"})
	Hashings    = newBudget(Budget{Bounds: "passwords that are hashed, two at a time, or wait for that", Payer: Address, Pool: 32, Beyond: "503"})

	PendingLogins = newBudget(Budget{Bounds: "logins by an OpenID provider under way", Payer: Address, Pool: 10_000, Beyond: "503"})

	StrangersEvents = newBudget(Budget{Bounds: "events that strangers cause", Payer: Domain, Rate: Daily(2000), Per: "user", Beyond: "counted in one event an hour"})
	IdleEvents      = newBudget(Budget{Bounds: "events that strangers cause by activities that do nothing here", Payer: Domain, Rate: Daily(200), Per: "user", Beyond: "counted in one event an hour"})

	// Budgets of this server's own users.
	Sockets = newBudget(Budget{Bounds: "sockets of users' programs", Payer: Address, Pool: 4096, Beyond: "503; of one user 429",
		Note: fmt.Sprintf("a user has %d at most, of which LLM engines have %d; they do not count as connections", SocketsOfUser, SocketsOfUser/2)})
	ActionBodies       = newBudget(Budget{Bounds: "bodies of users' actions under way", Payer: User, Pool: 64 << 20, Bytes: true, Beyond: "503"})
	ConversationBodies = newBudget(Budget{Bounds: "bodies of requests to conversations under way, with those that wait for their turn", Payer: User, Pool: 40 << 20, Bytes: true, Beyond: "503",
		Note: "8 MiB each, and up to four times as much of memory while one is decoded; at most 256 requests wait for one conversation, and one more is answered 429"})
	KeyPackageClaims = newBudget(Budget{Bounds: "claims of users' key packages", Payer: Sender, Rate: Rate{PerSecond: 1, Burst: 100}, Beyond: "429",
		Note: "they count as requests to inboxes, too; an actor claims 20 packages of one user a day, and the actors of one domain 40"})
	RecoveryReports = newBudget(Budget{Bounds: "reports of users' devices that they cannot go on in a conversation", Payer: User, Rate: Rate{PerSecond: 1.0 / 60, Burst: 20}, Beyond: "429"})

	LogPages = newBudget(Budget{Bounds: "pages of their logs that hosts of conversations are asked for", Payer: Domain, Rate: Rate{PerSecond: 1, Burst: 60}, Beyond: "asked later",
		Note: "of a conversation that no device of the user has joined, one"})
	LogGaps = newBudget(Budget{Bounds: "conversations whose hosts are being asked for their logs, or wait for that", Payer: Domain, Pool: 1000,
		Beyond: "asked once somebody reads the conversation, or more of it comes"})
	LogReads     = newBudget(Budget{Bounds: "hosts of conversations that are being asked for their logs", Payer: Domain, Pool: 8, Beyond: "asked later"})
	UnjoinedLogs = newBudget(Budget{Bounds: "storage of such pages, of conversations that no device of the user has joined", Payer: Domain, Rate: Daily(64 << 20), Bytes: true,
		Beyond: "asked once a device joins"})
	JoinedLogs = newBudget(Budget{Bounds: "storage of such pages, of conversations that a device of the user has joined", Payer: Domain, Rate: Daily(2 << 30), Bytes: true,
		Note: "for each user", Beyond: "asked later"})
	HostedLogs = newBudget(Budget{Bounds: "bodies of requests by which members elsewhere add to the logs of users' conversations", Payer: Domain, Rate: Daily(2 << 30), Bytes: true,
		Note: "for each user who hosts", Beyond: "429 before the body is read"})

	SignalsOfPair  = newBudget(Budget{Bounds: "signals about conversations", Payer: Sender, Rate: Rate{PerSecond: 1, Burst: 2}, Per: "actor that is told", Beyond: "dropped"})
	SignalsWaiting = newBudget(Budget{Bounds: "signals that wait for other servers", Payer: User, Pool: 1024, Beyond: "dropped", Note: "and those that wait for 5 s"})
	Lookups        = newBudget(Budget{Bounds: "actors, and objects that are not here, that users' programs ask for", Payer: User, Rate: Rate{PerSecond: 1, Burst: 60}, Note: "a token of scope `llm` has as many of its own", Beyond: "429"})
	Fillings       = newBudget(Budget{Bounds: "threads that users' programs have filled in from other servers", Payer: User, Rate: Rate{PerSecond: 10.0 / 60, Burst: 10},
		Note: fmt.Sprintf("each with %d objects, %d of one domain, and %d collections, in 10 s", FilledObjects, FilledOfDomain, FilledCollections), Beyond: "429"})
	Searches       = newBudget(Budget{Bounds: "searches of users' programs", Payer: User, Rate: Rate{PerSecond: 1, Burst: 30}, Note: "a token of scope `llm` has as many of its own", Beyond: "429"})
	Attempts       = newBudget(Budget{Bounds: "actions that a token of scope `llm` tries", Payer: Token, Hourly: 60, Daily: 500, Beyond: "429"})
	RefusedLines   = newBudget(Budget{Bounds: "log lines about refused requests", Payer: Address, Rate: Rate{PerSecond: 1, Burst: 20}, Per: "process", Beyond: "not logged"})
	UnprovenLines  = newBudget(Budget{Bounds: "log lines about refused signatures", Payer: Address, Rate: Rate{PerSecond: 1, Burst: 20}, Per: "process", Beyond: "not logged"})
	LoginLines     = newBudget(Budget{Bounds: "log lines about attempts at passwords", Payer: Address, Rate: Rate{PerSecond: 1, Burst: 100}, Per: "process", Beyond: "not logged"})
	FailureLines   = newBudget(Budget{Bounds: "log lines about requests that failed and are no bugs", Payer: Address, Rate: Rate{PerSecond: 1, Burst: 20}, Per: "process", Beyond: "not logged"})
	IgnoredLines   = newBudget(Budget{Bounds: "log lines about ignored activities", Payer: Domain, Rate: Rate{PerSecond: 1, Burst: 100}, Beyond: "not logged"})
	DeliveredLines = newBudget(Budget{Bounds: "log lines about deliveries that got through", Payer: Domain, Rate: Rate{PerSecond: 1, Burst: 20}, Per: "process", Beyond: "not logged",
		Note: "the domain of the inbox pays"})
	PutOffLines = newBudget(Budget{Bounds: "log lines about deliveries put off or given up", Payer: Domain, Rate: Rate{PerSecond: 1, Burst: 100}, Per: "process", Beyond: "not logged",
		Note: "the domain of the inbox pays"})
	WrittenRefusals = newBudget(Budget{Bounds: "records of refused actions", Payer: Token, Rate: Rate{PerSecond: 1.0 / 60, Burst: 10},
		Beyond: "counted, and written with a later one"})
)
