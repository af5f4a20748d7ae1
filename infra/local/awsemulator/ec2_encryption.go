package awsemulator

// volumes are EC2's defaults for volumes.
type volumes struct {
	*account
	encrypted     bool   // every new volume
	encryptionKey string // by which; empty: the key that AWS manages
}

// awsManagedKey encrypts volumes where nobody chose another key.
const awsManagedKey = "alias/aws/ebs"

// SetDefaultEncryption has EC2 encrypt every new volume of the account, with a key of its own if one is given.
func (c *volumes) SetDefaultEncryption(on bool, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encrypted, c.encryptionKey = on, key
}

type xmlEncryptionByDefault struct {
	On bool `xml:"ebsEncryptionByDefault"`
}

func (c *volumes) getEbsEncryptionByDefault(_ *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return xmlEncryptionByDefault{On: c.encrypted}, nil
}

type xmlDefaultKey struct {
	Key string `xml:"kmsKeyId"`
}

func (c *volumes) getEbsDefaultKmsKeyID(_ *call, _ *struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.encryptionKey == "" {
		return xmlDefaultKey{Key: awsManagedKey}, nil
	}
	return xmlDefaultKey{Key: c.encryptionKey}, nil
}
