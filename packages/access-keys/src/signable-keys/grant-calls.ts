import { ADDRESS } from './seal.ts';

/**
 * The roles that a contract must give an address before it can sign and mint: `keccak256` of their names, as in
 * OpenZeppelin's AccessControl. They are written out so that no process loads a library of a chain for three constants.
 */
export const CONTRACT_ROLES = {
  SIGNER_ROLE: '0xe2f4eaae4a9751e85a3e4a7b9587827a877f29914755229b07a7b2da98285f70',
  MINTER_ROLE: '0x9f2df0fed2c77648de5860a4cc508cd0818c85b8b8a1ab4ceeef8d981c8956a6',
} as const;

export type ContractRole = keyof typeof CONTRACT_ROLES;

/** The first four bytes of `keccak256` of the signature. */
const GRANT_ROLE = { signature: 'grantRole(bytes32,address)', selector: '0x2f2ff15d' } as const;

/** A call that the administrator of a contract must send; the service has no right to. */
export interface GrantCall {
  readonly role: ContractRole;
  /** `grantRole(bytes32,address)` */
  readonly signature: string;
  /** The contract. */
  readonly to: string;
  /** Calldata, hexadecimal. */
  readonly data: string;
}

/**
 * The calls that give an address the roles of a contract.
 * @throws Error unless both are `0x` and 40 lower-case hexadecimal digits
 */
export function grantCallsOf({ contract, address }: { contract: string; address: string }): readonly GrantCall[] {
  if (!ADDRESS.test(contract) || !ADDRESS.test(address))
    throw new Error('expected addresses of 0x and 40 lower-case hexadecimal digits');
  const [{ signature, selector }, argument] = [GRANT_ROLE, address.slice(2).padStart(64, '0')];
  return (['SIGNER_ROLE', 'MINTER_ROLE'] as const).map((role) => {
    const data = `${selector}${CONTRACT_ROLES[role].slice(2)}${argument}`;
    return { role, signature, to: contract, data };
  });
}
