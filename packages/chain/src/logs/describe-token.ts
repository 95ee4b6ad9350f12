import { fromHexText, type TokenRecord } from '@playline/contracts';
import { type CallResult, type ChainNode, type ContractCall, NodeFault } from '../node.ts';
import { DECIMALS_MAX } from '../rows.ts';
import { AbiFault, AbiReader, selectorOf } from './abi-reader.ts';

const ADDRESS_WORD = '1'.padStart(64, '0');
const CALLS = ['name()', 'symbol()', 'decimals()'].map(selectorOf);
/** Functions that only an ERC-20 has together; an ERC-721 has no allowances. They are called for the address 1. */
const ERC20_CALLS = [
  selectorOf('totalSupply()'),
  `${selectorOf('balanceOf(address)')}${ADDRESS_WORD}`,
  `${selectorOf('allowance(address,address)')}${ADDRESS_WORD}${ADDRESS_WORD}`,
];
/** The same limit as for imports. */
const TEXT_MAX = 256;
const WORD = 32;
const WORD_DIGITS = 2 + 2 * WORD;
/** Longer answers are ignored, because a contract can return a name of any length at no cost. */
const ANSWER_DIGITS_MAX = 20_000;

/**
 * Reads the names of contracts. Answers are untrusted: an unusable one becomes null, a long one is cut.
 * @param contracts `0x` and 40 lower-case digits
 * @returns for each contract its token, or why the node did not answer one of its calls
 * @throws NodeFault when the node answers nothing
 */
export async function describeTokens(
  node: Pick<ChainNode, 'calls'>,
  chain: string,
  contracts: readonly string[],
): Promise<(TokenRecord | NodeFault)[]> {
  const calls: ContractCall[] = contracts.flatMap((to) => CALLS.map((data) => ({ to, data })));
  const results = await node.calls(calls);
  return contracts.map((contract, index) =>
    toToken(chain, contract, results.slice(index * CALLS.length, (index + 1) * CALLS.length)),
  );
}

/**
 * Reads a contract that no log has shown to be a token.
 * @returns null when it does not answer as an ERC-20
 * @throws NodeFault when the node does not answer all calls
 */
export async function describeErc20(
  node: Pick<ChainNode, 'calls'>,
  chain: string,
  contract: string,
): Promise<TokenRecord | null> {
  const results = await node.calls([...CALLS, ...ERC20_CALLS].map((data) => ({ to: contract, data })));
  const token = toToken(chain, contract, results.slice(0, CALLS.length));
  if (token instanceof NodeFault) throw token;
  const fault = results.find((result) => result instanceof NodeFault);
  if (fault !== undefined) throw fault;
  const areWords = results.slice(CALLS.length).every((result) => String(result).length === WORD_DIGITS);
  // Decimals are optional. A contract that returns a hash for any call, as some precompiled ones do, has others.
  const [, , decimals] = results;
  const areDecimals = decimals === null || decimals === '0x' || token.decimals !== null;
  return areWords && areDecimals ? token : null;
}

function toToken(chain: string, contract: string, results: readonly CallResult[]): TokenRecord | NodeFault {
  const fault = results.find((result) => result instanceof NodeFault);
  if (fault !== undefined) return fault;
  const [name = null, symbol = null, decimals = null] = results as readonly (string | null)[];
  return {
    chain,
    contractAddress: fromHexText(contract),
    rootContractAddress: null,
    symbol: toTokenText(symbol),
    decimals: toDecimals(decimals),
    imageUrl: null,
    name: toTokenText(name),
    verificationStatus: 'unverified',
    // Anybody can use a name, so an operator decides which token is canonical.
    isCanonical: false,
    rootChainId: null,
    bridgeUsed: null,
    traceId: contract.slice(2, 34),
  };
}

/** Decodes a string of the ABI. Early contracts return a zero-padded word instead. */
export function toTokenText(answer: string | null): string | null {
  if (answer === null || answer.length > ANSWER_DIGITS_MAX) return null;
  try {
    const words = new AbiReader(answer);
    const bytes = words.length === WORD ? trimZeros(Buffer.from(answer.slice(2), 'hex')) : words.string(0);
    return cleanText(bytes.toString('utf8'));
  } catch (fault) {
    if (fault instanceof AbiFault) return null;
    throw fault;
  }
}

function trimZeros(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

/** Removes control characters, which could rearrange the text around them, and cuts to `TEXT_MAX`. */
function cleanText(text: string): string | null {
  const clean = [...text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')].slice(0, TEXT_MAX).join('').trim();
  return clean === '' ? null : clean;
}

function toDecimals(answer: string | null): number | null {
  try {
    const value = answer === null ? null : new AbiReader(answer).uint(0);
    return value === null || value > BigInt(DECIMALS_MAX) ? null : Number(value);
  } catch (fault) {
    if (fault instanceof AbiFault) return null;
    throw fault;
  }
}
