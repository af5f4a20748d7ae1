package provision

// ShareEvents are the events that a pass tells of those there are.
var ShareEvents = shareEvents
