// Package instancetypes knows what EC2 sells: instance types, where and how they are offered, and what they cost.
//
// It knows facts and the arithmetic that turns them into labels, capacity, allocatable and offerings for one
// EC2NodeClass. It refuses to know how the facts were read and which offering should be bought. Prices are USD per
// hour.
package instancetypes
