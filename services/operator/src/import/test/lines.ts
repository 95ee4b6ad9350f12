export function lineOf(
  number: number,
  { amount = 1, type = 'mint', chain = 'demo-chain' }: { amount?: number; type?: string; chain?: string } = {},
) {
  return {
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    chain,
    type,
    indexed_at: '2026-11-21T08:13:36.000123Z',
    blockchain_metadata: null,
    details: {
      to: `0x${'1'.repeat(40)}`,
      amount: String(amount),
      asset: { contract_type: 'ERC20', contract_address: `0x${'2'.repeat(40)}` },
    },
  };
}

export function tokenLineOf(number: number, name = 'Gold') {
  return {
    chain: 'demo-chain',
    contract_address: `0x${String(number).padStart(40, '0')}`,
    root_contract_address: null,
    symbol: 'GLD',
    decimals: 18,
    image_url: null,
    name,
    verification_status: 'verified',
    is_canonical: true,
    root_chain_id: null,
    bridge_used: null,
  };
}
