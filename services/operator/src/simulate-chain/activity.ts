import type { ActivityType } from '@playline/contracts';

export interface Nft {
  contract_type: 'ERC721' | 'ERC1155';
  contract_address: string;
  token_id: string;
  amount: string;
}
export interface Fungible {
  contract_type: 'ERC20';
  contract_address: string;
}
export interface Payment {
  token: Fungible | { contract_type: 'NATIVE'; symbol: string };
  price_excluding_fees: string;
  price_including_fees: string;
  fees: { amount: string; type: 'ROYALTY'; recipient: string }[];
}
export interface Details {
  order_id?: string;
  from?: string;
  to?: string;
  amount?: string;
  asset: Nft | Fungible | Nft[];
  payment?: Payment;
}
export interface Metadata {
  transaction_hash: string;
  block_number: string;
  transaction_index: string;
  log_index: string | null;
}

/** An activity of the model, with the members of an import line; addresses in lower case. */
export interface MadeActivity {
  id: string;
  chain: string;
  type: ActivityType;
  indexed_at: string;
  blockchain_metadata: Metadata | null;
  details: Details;
}

/** The contract under which readers find it. */
export function contractAddressOf({ details: { asset } }: Pick<MadeActivity, 'details'>): string {
  return (Array.isArray(asset) ? asset[0]! : asset).contract_address;
}
