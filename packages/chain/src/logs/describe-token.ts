import { fromHexText, type TokenRecord } from '@playline/contracts';
import type { ChainNode, ContractCall } from '../node.ts';
import { DECIMALS_MAX } from '../rows.ts';
import { AbiFault, selectorOf, Words } from './words.ts';

const CALLS = ['name()', 'symbol()', 'decimals()'].map(selectorOf);
/** The same limit as for imports. */
const TEXT_MAX = 256;
const WORD = 32;
/** Longer answers are ignored, because a contract can return a name of any length at no cost. */
const ANSWER_DIGITS_MAX = 20_000;

/**
 * Asks contracts for their names. Answers are untrusted: an unusable one becomes null, a long one is cut.
 * @param contracts `0x` and 40 lower-case digits
 * @throws NodeFault
 */
export async function describeTokens(
  node: Pick<ChainNode, 'calls'>,
  chain: string,
  contracts: readonly string[],
): Promise<TokenRecord[]> {
  const calls: ContractCall[] = contracts.flatMap((to) => CALLS.map((data) => ({ to, data })));
  const answers = await node.calls(calls);
  return contracts.map((contract, index) => {
    const [name = null, symbol = null, decimals = null] = answers.slice(
      index * CALLS.length,
      (index + 1) * CALLS.length,
    );
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
  });
}

/** Decodes a string of the ABI. Early contracts return a zero-padded word instead. */
export function toTokenText(answer: string | null): string | null {
  if (answer === null || answer.length > ANSWER_DIGITS_MAX) return null;
  try {
    const words = new Words(answer);
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
    const value = answer === null ? null : new Words(answer).uint(0);
    return value === null || value > BigInt(DECIMALS_MAX) ? null : Number(value);
  } catch (fault) {
    if (fault instanceof AbiFault) return null;
    throw fault;
  }
}
