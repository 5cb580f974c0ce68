package db

// Types names the types of activities that queries on users' databases tell apart. The registry of
// handlers knows them.
type Types struct {
	Words       []string // bring the words of an object that their actor wrote
	Authored    []string // are about an object of their actor's own
	ShowObject  []string // show their object to whoever is shown them
	Ordered     []string // are taken back by their own id, and not by that of their object
	TakeBack    []string // take back what their actor sent before
	Relate      []string // are kept as long as there is a relationship with their actor
	Answer      []string // answer a Follow or a request
	Notify      []string // are notifications, whatever they are about
	NotifyOwner []string // are notifications when they are about the user, something of the user's, or nothing that has an id
	NotifyNamed []string // are notifications when they name the user, or answer something of the user's
}
