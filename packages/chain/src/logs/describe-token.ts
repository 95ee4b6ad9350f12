import { fromHexText, type TokenRecord } from '@playline/contracts';
import { type CallResult, type ChainNode, type ContractCall, NodeFault } from '../node.ts';
import { DECIMALS_MAX } from '../rows.ts';
import { AbiFault, AbiReader, selectorOf } from './abi-reader.ts';

const ADDRESS_WORD = '1'.padStart(64, '0');
const CALLS = ['name()', 'symbol()', 'decimals()'].map(selectorOf);
/** Only an ERC-20 contract implements all three functions. The arguments are address 1. */
const ERC20_CALLS = [
  selectorOf('totalSupply()'),
  `${selectorOf('balanceOf(address)')}${ADDRESS_WORD}`,
  `${selectorOf('allowance(address,address)')}${ADDRESS_WORD}${ADDRESS_WORD}`,
];
/** The limit for imported names. */
const TEXT_MAX = 256;
const WORD = 32;
const WORD_DIGITS = 2 + 2 * WORD;
/** Limits results, because a contract can return a string of any length. */
const RESULT_DIGITS_MAX = 20_000;

/**
 * Reads names, symbols and decimals. Invalid results become null. @returns a token or a fault for each contract
 * @throws NodeFault if the whole request fails
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

/** @returns null if the contract is not an ERC-20 @throws NodeFault unless the node executes all calls */
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
  const haveWordLength = results.slice(CALLS.length).every((result) => String(result).length === WORD_DIGITS);
  // Decimals are optional, but a contract that returns a hash for any call has invalid decimals.
  const [, , decimals] = results;
  const hasValidDecimals = decimals === null || decimals === '0x' || token.decimals !== null;
  return haveWordLength && hasValidDecimals ? token : null;
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
    // Names are not unique, so an operator decides which token is canonical.
    isCanonical: false,
    rootChainId: null,
    bridgeUsed: null,
    traceId: contract.slice(2, 34),
  };
}

/** Decodes an ABI string. Early contracts return a zero-padded word instead. */
export function toTokenText(result: string | null): string | null {
  if (result === null || result.length > RESULT_DIGITS_MAX) return null;
  try {
    const reader = new AbiReader(result);
    const bytes = reader.length === WORD ? trimZeros(Buffer.from(result.slice(2), 'hex')) : reader.string(0);
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

/** Removes control characters, which could reorder the text around them. */
function cleanText(text: string): string | null {
  const clean = [...text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')].slice(0, TEXT_MAX).join('').trim();
  return clean === '' ? null : clean;
}

function toDecimals(result: string | null): number | null {
  try {
    const value = result === null ? null : new AbiReader(result).uint(0);
    return value === null || value > BigInt(DECIMALS_MAX) ? null : Number(value);
  } catch (fault) {
    if (fault instanceof AbiFault) return null;
    throw fault;
  }
}
