package user

// Types are the types of activities that the queries on users' databases distinguish. The
// registry of handlers sets them.
type Types struct {
	Words       []string // contain the text of an object that the activity's actor wrote
	Authored    []string // are about an object of their own actor
	ShowObject  []string // show their object to every reader of the activity
	Ordered     []string // have their own id as the Object of their delivery job
	TakeBack    []string // take back what their actor sent before
	Relate      []string // are stored as long as there is a relationship with their actor
	Answer      []string // answer a Follow, an Offer or another request
	Notify      []string // are always notifications
	NotifyOwner []string // are notifications when their object is the user or the user's, or has no id
	NotifyNamed []string // are notifications when they name the user, or answer or quote the user's objects
}
