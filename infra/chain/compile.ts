// `npm run contracts`: compiles the contracts into `compiled`; `--check` only reports differences. Same sources and
// locked packages yield the same bytes on every machine.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Abi, concatHex, encodeAbiParameters, getContractAddress, type Hex } from 'viem';
import { ADMIN, CREATE2_DEPLOYER, DEMO_ARGUMENTS, DEMO_SALT, type DemoContract } from './demo.ts';

const CONTRACTS = join(import.meta.dirname, 'contracts');
const COMPILED = join(import.meta.dirname, 'compiled');
const require = createRequire(import.meta.url);

/** The part of `solc` that is used here. The package has no types. */
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

/** Keeps names and comments out of the bytecode, so that they do not change addresses. */
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

/** @throws Error with the compiler's messages, including warnings except those about libraries */
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

/** CREATE2 addresses, which depend only on bytecode and arguments. */
function toDemo(compiled: ReadonlyMap<string, Compiled>): Record<DemoContract, { address: Hex; arguments: Hex }> {
  const deployments = Object.entries(DEMO_ARGUMENTS).map(([name, texts]) => {
    const { abi, bytecode } = compiled.get(`demo-${name}`)!;
    const inputs = abi.find((item) => item.type === 'constructor')!.inputs;
    const encoded = encodeAbiParameters(inputs, [ADMIN, ...texts]);
    const from = { opcode: 'CREATE2', from: CREATE2_DEPLOYER, salt: DEMO_SALT } as const;
    const address = getContractAddress({ ...from, bytecode: concatHex([bytecode, encoded]) });
    return [name, { address: address.toLowerCase(), arguments: encoded }];
  });
  return Object.fromEntries(deployments);
}

/** One ABI item per line, for readable diffs. */
function toText({ contract, abi, bytecode }: Compiled): string {
  const items = abi.map((item) => `    ${JSON.stringify(item)}`).join(',\n');
  return `{\n  "contract": "${contract}",\n  "abi": [\n${items}\n  ],\n  "bytecode": "${bytecode}"\n}\n`;
}

/** Contents of all files in `compiled`. */
export function compileAll(): Map<string, string> {
  const compiled = compile();
  const files = [...compiled].map(([name, one]) => [`${name}.json`, toText(one)] as const);
  return new Map([...files, ['demo.json', `${JSON.stringify(toDemo(compiled), null, 2)}\n`]]);
}

/** Names of files in `compiled` that differ from `files`. */
export function findDifferent(files: ReadonlyMap<string, string>): string[] {
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
  const different = findDifferent(files);
  if (values.check) {
    console.log(different.length === 0 ? 'the compiled contracts match their sources' : different.join('\n'));
    return different.length === 0 ? 0 : 1;
  }
  for (const [name, text] of files) writeFileSync(join(COMPILED, name), text);
  console.log(different.length === 0 ? 'unchanged' : `written: ${different.join(', ')}`);
  return 0;
}

if (import.meta.main) process.exit(main());
