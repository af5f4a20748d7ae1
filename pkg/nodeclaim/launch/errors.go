package launch

// TokenUsedError says that EC2 knows the token of a launch from a request of another content, and that no instance of
// the claim can be found: that earlier request started none, or one that EC2 does not show yet.
type TokenUsedError struct {
	Token string
}

// Error names the token.
func (e *TokenUsedError) Error() string {
	return "launch token " + e.Token + " was used for another request, and no instance of the claim can be found"
}
