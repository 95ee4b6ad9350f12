export { type AnvilOptions, anvilArguments, anvilProgram, setClock } from './anvil.ts';
export { type BlockMaker, type BlockMakerOptions, openBlockMaker } from './block-maker.ts';
export {
  type CompiledContract,
  type ContractName,
  type DemoDeployment,
  readContract,
  readDemoDeployments,
  SIGNATURES,
} from './contracts.ts';
export { ADMIN, CHAIN_ID, type DemoContract } from './demo.ts';
export { type DemoAddresses, deployDemo, prepareSigner, ROLES } from './deploy-demo.ts';
export { callRpc, callRpcs } from './rpc.ts';
export { saveState } from './state-file.ts';
