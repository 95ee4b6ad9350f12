import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoContract } from './demo.ts';

/** The compiled contracts: those of the demo, and those that only tests deploy. */
export type ContractName =
  | 'demo-erc721'
  | 'demo-erc1155'
  | 'demo-erc20'
  | 'consecutive-erc721'
  | 'hostile-erc20'
  | 'log-emitter'
  | 'old-erc20';

export interface CompiledContract {
  /** Its name in the source. */
  readonly contract: string;
  /** The compiler's output. TypeScript code uses the types of `signatures.ts` instead. */
  readonly abi: readonly object[];
  /** Bytecode for the deployment, without the constructor's arguments. */
  readonly bytecode: `0x${string}`;
}

/** Address of a deployed demo contract, and its constructor's arguments. */
export interface DemoPlace {
  /** In lower case. */
  readonly address: `0x${string}`;
  /** Encoded, to be appended to the bytecode. */
  readonly arguments: `0x${string}`;
}

const readCompiled = (file: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'compiled', file), 'utf8'));

export function readContract(name: ContractName): CompiledContract {
  return readCompiled(`${name}.json`) as CompiledContract;
}

export function readDemoPlaces(): Readonly<Record<DemoContract, DemoPlace>> {
  return readCompiled('demo.json') as Record<DemoContract, DemoPlace>;
}
