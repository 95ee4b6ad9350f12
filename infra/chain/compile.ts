// `npm run contracts`: compiles the contracts and writes the output to `compiled`. The same sources and locked packages
// give the same bytes on every machine. `--check` writes nothing and reports what differs.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Abi, concatHex, encodeAbiParameters, getContractAddress, type Hex } from 'viem';
import { ADMIN, CREATE2_DEPLOYER, DEMO_ARGUMENTS, DEMO_SALT, type DemoContract } from './demo.ts';

const CONTRACTS = join(import.meta.dirname, 'contracts');
const COMPILED = join(import.meta.dirname, 'compiled');
const require = createRequire(import.meta.url);

/** The part of `solc` that is used here; the package has no types. */
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

/** The bytecode contains no names or comments of the sources, so that editing a comment changes no address. */
const SETTINGS = {
  evmVersion: 'cancun',
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
};

/** `demo-erc721.sol` of `contracts` and of `contracts/test`, by their paths below `contracts`. */
function readSources(): Record<string, { content: string }> {
  const paths = readdirSync(CONTRACTS, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.sol'));
  return Object.fromEntries(
    paths.sort().map((path) => [path, { content: readFileSync(join(CONTRACTS, path), 'utf8') }]),
  );
}

/** Libraries are read from the installed packages. */
function readLibrary(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readFileSync(require.resolve(path), 'utf8') };
  } catch {
    return { error: `${path} is not installed` };
  }
}

/**
 * Ignores warnings about libraries.
 * @throws Error with the compiler's messages, also for a warning about our sources
 */
function compile(): Map<string, Compiled> {
  const solc = require('solc') as Compiler;
  const sources = readSources();
  const input = { language: 'Solidity', sources, settings: SETTINGS };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: readLibrary })) as CompilerOutput;
  const faults = (output.errors ?? [])
    .filter(({ severity, sourceLocation }) => severity === 'error' || sourceLocation?.file.startsWith('@') !== true)
    .map(({ formattedMessage }) => formattedMessage);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const compiled = new Map<string, Compiled>();
  // An abstract contract has no bytecode.
  for (const path of Object.keys(sources))
    for (const [contract, { abi, evm }] of Object.entries(output.contracts?.[path] ?? {}))
      if (evm.bytecode.object !== '')
        compiled.set(basename(path, '.sol'), { contract, abi, bytecode: `0x${evm.bytecode.object}` });
  return compiled;
}

/** Addresses of the demo contracts, the same on every chain: they follow from the bytecode and its arguments. */
function toDemo(compiled: ReadonlyMap<string, Compiled>): Record<DemoContract, { address: Hex; arguments: Hex }> {
  const placed = Object.entries(DEMO_ARGUMENTS).map(([name, texts]) => {
    const { abi, bytecode } = compiled.get(`demo-${name}`)!;
    const inputs = abi.find((item) => item.type === 'constructor')!.inputs;
    const encoded = encodeAbiParameters(inputs, [ADMIN, ...texts]);
    const where = { opcode: 'CREATE2', from: CREATE2_DEPLOYER, salt: DEMO_SALT } as const;
    const address = getContractAddress({ ...where, bytecode: concatHex([bytecode, encoded]) });
    return [name, { address: address.toLowerCase(), arguments: encoded }];
  });
  return Object.fromEntries(placed);
}

/** One item of the interface per line, so that a diff shows the changed item. */
function toText({ contract, abi, bytecode }: Compiled): string {
  const items = abi.map((item) => `    ${JSON.stringify(item)}`).join(',\n');
  return `{\n  "contract": "${contract}",\n  "abi": [\n${items}\n  ],\n  "bytecode": "${bytecode}"\n}\n`;
}

/** Expected content of all files below `compiled`. @throws Error with the compiler's messages */
export function compileAll(): Map<string, string> {
  const compiled = compile();
  const files = [...compiled].map(([name, one]) => [`${name}.json`, toText(one)] as const);
  return new Map([...files, ['demo.json', `${JSON.stringify(toDemo(compiled), null, 2)}\n`]]);
}

/** Names of the files below `compiled` that differ from the output of the sources. */
export function findDifferent(files: ReadonlyMap<string, string>): string[] {
  const strangers = readdirSync(COMPILED).filter((name) => !files.has(name));
  const there = new Set(readdirSync(COMPILED));
  const changed = [...files].filter(
    ([name, text]) => !there.has(name) || readFileSync(join(COMPILED, name), 'utf8') !== text,
  );
  return [...strangers, ...changed.map(([name]) => name)].sort();
}

function main(): number {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const files = compileAll();
  const different = findDifferent(files);
  if (values.check) {
    console.log(different.length === 0 ? 'the compiled contracts are those of their sources' : different.join('\n'));
    return different.length === 0 ? 0 : 1;
  }
  for (const [name, text] of files) writeFileSync(join(COMPILED, name), text);
  console.log(different.length === 0 ? 'nothing has changed' : `written: ${different.join(', ')}`);
  return 0;
}

if (import.meta.main) process.exit(main());
