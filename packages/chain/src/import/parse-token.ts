import { fromHexText, type TokenRecord, VERIFICATION_STATUSES } from '@playline/contracts';
import { z } from 'zod';
import { DECIMALS_MAX } from '../rows.ts';
import { address, ownChain, type Parsed, text, toErrors } from './fields.ts';
import type { ImportContext } from './parse-activity.ts';

/** Length limits of texts in the interface. Tokens themselves have none. */
const NAME_MAX = 256;
const URL_MAX = 2_048;

const shapeOf = (chain: string | null) =>
  z.object({
    chain: ownChain(chain),
    contract_address: address(),
    root_contract_address: address().nullable(),
    symbol: text(NAME_MAX).nullable(),
    decimals: z.int().min(0).max(DECIMALS_MAX).nullable(),
    image_url: text(URL_MAX).nullable(),
    name: text(NAME_MAX).nullable(),
    verification_status: z.enum(VERIFICATION_STATUSES),
    is_canonical: z.boolean(),
    root_chain_id: text(NAME_MAX).nullable(),
    bridge_used: text(NAME_MAX).nullable(),
  });

/** Creates the parser of tokens of an import, with the same form of lines as `createParseActivity`. */
export function createParseToken({ chain, traceId }: ImportContext): (line: unknown) => Parsed<TokenRecord> {
  const shape = shapeOf(chain);
  return (line) => {
    const parsed = shape.safeParse(line, { reportInput: true });
    if (!parsed.success) return { ok: false, errors: toErrors(parsed.error.issues) };
    const token = parsed.data;
    const root = token.root_contract_address;
    const record: TokenRecord = {
      chain: token.chain,
      contractAddress: fromHexText(token.contract_address),
      rootContractAddress: root === null ? null : fromHexText(root),
      symbol: token.symbol,
      decimals: token.decimals,
      imageUrl: token.image_url,
      name: token.name,
      verificationStatus: token.verification_status,
      isCanonical: token.is_canonical,
      rootChainId: token.root_chain_id,
      bridgeUsed: token.bridge_used,
      traceId,
    };
    return { ok: true, record };
  };
}
