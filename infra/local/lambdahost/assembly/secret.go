package assembly

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// revealSecret is the text, or what a dynamic reference to a secret stands for:
// {{resolve:secretsmanager:ARN:SecretString:::}}.
func (s *stack) revealSecret(text string) (any, error) {
	const begin, end = "{{resolve:secretsmanager:", ":SecretString:::}}"
	inside, ok := strings.CutPrefix(text, "{{resolve:")
	if !ok || !strings.Contains(inside, "}}") { // nothing, or the first part of what is joined
		return text, nil
	}
	arn, plain := strings.CutSuffix(strings.TrimPrefix(text, begin), end)
	if !strings.HasPrefix(text, begin) || !plain {
		return nil, fmt.Errorf("dynamic reference {{resolve:%s: only the whole value of a secret of Secrets Manager is known here", inside)
	}
	if value, ok := s.secrets[arn]; ok {
		return value, nil
	}
	for _, id := range sortedKeys(s.template.Resources) {
		r := s.template.Resources[id]
		if r.Type != "AWS::SecretsManager::Secret" {
			continue
		}
		own, err := s.resolveAttribute(id, r, "Ref")
		if err != nil {
			return nil, err
		}
		if own != arn {
			continue
		}
		value, err := generateSecret(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if s.secrets == nil {
			s.secrets = map[string]string{}
		}
		s.secrets[arn] = value
		return value, nil
	}
	return nil, fmt.Errorf("secret %s is no resource of the template", arn)
}

// generateSecret makes a random value as Secrets Manager does, another one each time that the assembly is loaded.
func generateSecret(r resource) (string, error) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	var p struct {
		GenerateSecretString *struct {
			ExcludePunctuation bool
			PasswordLength     int
		}
	}
	text, err := json.Marshal(r.Properties)
	if err != nil {
		return "", fmt.Errorf("encode properties: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("read properties: %w", err)
	}
	if p.GenerateSecretString == nil || !p.GenerateSecretString.ExcludePunctuation {
		return "", errors.New("only generated secrets of letters and digits are known here")
	}
	const usual = 32
	out := make([]byte, cmp.Or(p.GenerateSecretString.PasswordLength, usual))
	for i := 0; i < len(out); {
		var b [1]byte
		if _, err := rand.Read(b[:]); err != nil {
			return "", fmt.Errorf("make secret: %w", err)
		}
		if n := int(b[0]) & 63; n < len(letters) { // every letter as likely as any other
			out[i] = letters[n]
			i++
		}
	}
	return string(out), nil
}
