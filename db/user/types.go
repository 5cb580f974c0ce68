package user

// Types are the types of activities that the queries on users' databases distinguish. The
// registry of handlers sets them.
type Types struct {
	Words       []string // contain the text of an object that the activity's actor wrote
	Authored    []string // are about an object of their own actor
	ShowObject  []string // show their object to every reader of the activity
	Ordered     []string // are undone by their own id, not by that of their object
	TakeBack    []string // take back what their actor sent before
	Relate      []string // are stored as long as there is a relationship with their actor
	Answer      []string // answer a Follow or a request
	Notify      []string // are notifications, whatever they are about
	NotifyOwner []string // are notifications when their object is the user or the user's, or has no id
	NotifyNamed []string // are notifications when they name the user, or answer or quote the user's objects
}
