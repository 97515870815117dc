// The node of a test: the rules of the hard fork that the contracts are compiled for, and a code limit as on networks.
module.exports = {
  solidity: "0.8.28",
  networks: { hardhat: { chainId: 31337, hardfork: "cancun", blockGasLimit: 30000000 } },
};
