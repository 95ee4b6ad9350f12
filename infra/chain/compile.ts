// Implements `npm run contracts`: compiles the contracts into `compiled`, or with `--check` only reports differences.
// The same sources and locked packages result in the same bytes on every machine.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Abi, concatHex, encodeAbiParameters, getContractAddress, type Hex } from 'viem';
import { ADMIN, CREATE2_DEPLOYER, DEMO_ARGUMENTS, DEMO_SALT, type DemoContract } from './demo.ts';

const CONTRACTS = join(import.meta.dirname, 'contracts');
const COMPILED = join(import.meta.dirname, 'compiled');
const require = createRequire(import.meta.url);

/** The subset of the `solc` API that is used here. The package has no types. */
interface Compiler {
  version(): string;
  compile(input: string, callbacks: { import(path: string): { contents: string } | { error: string } }): string;
}

interface Compiled {
  readonly contract: string;
  readonly abi: Abi;
  readonly bytecode: Hex;
}

interface CompilerOutput {
  readonly errors?: readonly {
    readonly severity: string;
    readonly sourceLocation?: { readonly file: string };
    readonly formattedMessage: string;
  }[];
  readonly contracts?: Record<string, Record<string, { abi: Abi; evm: { bytecode: { object: string } } }>>;
}

/** Excludes metadata from the bytecode, so that names and comments do not change addresses. */
const SETTINGS = {
  evmVersion: 'cancun',
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
};

function readSources(): Record<string, { content: string }> {
  const paths = readdirSync(CONTRACTS, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.sol'));
  return Object.fromEntries(
    paths.sort().map((path) => [path, { content: readFileSync(join(CONTRACTS, path), 'utf8') }]),
  );
}

function readLibrary(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readFileSync(require.resolve(path), 'utf8') };
  } catch {
    return { error: `${path} is not installed` };
  }
}

/** @throws Error with the compiler's errors and warnings, except warnings about libraries */
function compile(): Map<string, Compiled> {
  const solc = require('solc') as Compiler;
  const sources = readSources();
  const input = { language: 'Solidity', sources, settings: SETTINGS };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: readLibrary })) as CompilerOutput;
  const messages = (output.errors ?? [])
    .filter(({ severity, sourceLocation }) => severity === 'error' || sourceLocation?.file.startsWith('@') !== true)
    .map(({ formattedMessage }) => formattedMessage);
  if (messages.length > 0) throw new Error(messages.join('\n'));
  const compiled = new Map<string, Compiled>();
  // An abstract contract has no bytecode.
  for (const path of Object.keys(sources))
    for (const [contract, { abi, evm }] of Object.entries(output.contracts?.[path] ?? {}))
      if (evm.bytecode.object !== '')
        compiled.set(basename(path, '.sol'), { contract, abi, bytecode: `0x${evm.bytecode.object}` });
  return compiled;
}

/** Computes the CREATE2 addresses, which depend only on bytecode and arguments. */
function toDemoDeployments(
  compiled: ReadonlyMap<string, Compiled>,
): Record<DemoContract, { address: Hex; arguments: Hex }> {
  const deployments = Object.entries(DEMO_ARGUMENTS).map(([name, values]) => {
    const { abi, bytecode } = compiled.get(`demo-${name}`)!;
    const inputs = abi.find((item) => item.type === 'constructor')!.inputs;
    const encoded = encodeAbiParameters(inputs, [ADMIN, ...values]);
    const from = { opcode: 'CREATE2', from: CREATE2_DEPLOYER, salt: DEMO_SALT } as const;
    const address = getContractAddress({ ...from, bytecode: concatHex([bytecode, encoded]) });
    return [name, { address: address.toLowerCase(), arguments: encoded }];
  });
  return Object.fromEntries(deployments);
}

/** Formats a compiled contract with one ABI item per line, for readable diffs. */
function formatContract({ contract, abi, bytecode }: Compiled): string {
  const items = abi.map((item) => `    ${JSON.stringify(item)}`).join(',\n');
  return `{\n  "contract": "${contract}",\n  "abi": [\n${items}\n  ],\n  "bytecode": "${bytecode}"\n}\n`;
}

/** Compiles all contracts. @returns the contents of the files in `compiled` by name */
export function compileAll(): Map<string, string> {
  const compiled = compile();
  const files = [...compiled].map(([name, contract]) => [`${name}.json`, formatContract(contract)] as const);
  return new Map([...files, ['demo.json', `${JSON.stringify(toDemoDeployments(compiled), null, 2)}\n`]]);
}

/** Returns the names of files in `compiled` that differ from `files`. */
export function findDifferences(files: ReadonlyMap<string, string>): string[] {
  const present = new Set(readdirSync(COMPILED));
  const unexpected = [...present].filter((name) => !files.has(name));
  const changed = [...files].filter(
    ([name, text]) => !present.has(name) || readFileSync(join(COMPILED, name), 'utf8') !== text,
  );
  return [...unexpected, ...changed.map(([name]) => name)].sort();
}

function main(): number {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const files = compileAll();
  const differences = findDifferences(files);
  if (values.check) {
    console.log(differences.length === 0 ? 'the compiled contracts match their sources' : differences.join('\n'));
    return differences.length === 0 ? 0 : 1;
  }
  for (const [name, text] of files) writeFileSync(join(COMPILED, name), text);
  console.log(differences.length === 0 ? 'unchanged' : `updated: ${differences.join(', ')}`);
  return 0;
}

if (import.meta.main) process.exit(main());
