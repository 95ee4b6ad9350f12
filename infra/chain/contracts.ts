// The compiled contracts and their ABIs for type-checked calls.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoContract } from './demo.ts';

/** Names of contracts. The `demo-` contracts are deployed on the local chain; tests deploy all others. */
export type ContractName =
  | 'demo-erc721'
  | 'demo-erc1155'
  | 'demo-erc20'
  | 'consecutive-erc721'
  | 'hostile-erc20'
  | 'log-emitter'
  | 'old-erc20';

export interface CompiledContract {
  readonly contract: string;
  /** The compiled ABI. Code uses the types of `SIGNATURES` instead. */
  readonly abi: readonly object[];
  /** Bytecode without constructor arguments. */
  readonly bytecode: `0x${string}`;
}

export interface DemoDeployment {
  /** Contract address in lower case. */
  readonly address: `0x${string}`;
  /** Encoded constructor arguments, which are appended to the bytecode. */
  readonly arguments: `0x${string}`;
}

const readCompiled = (file: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'compiled', file), 'utf8'));

export const readContract = (name: ContractName): CompiledContract => readCompiled(`${name}.json`) as CompiledContract;

export const readDemoDeployments = (): Readonly<Record<DemoContract, DemoDeployment>> =>
  readCompiled('demo.json') as Record<DemoContract, DemoDeployment>;

/** Signatures for viem's `parseAbi`. A test compares them with the compiled contracts. */
const ROLES = [
  'function MINTER_ROLE() view returns (bytes32)',
  'function SIGNER_ROLE() view returns (bytes32)',
  'function DEFAULT_ADMIN_ROLE() view returns (bytes32)',
  'function hasRole(bytes32 role, address account) view returns (bool)',
  'function grantRole(bytes32 role, address account)',
  'function revokeRole(bytes32 role, address account)',
  'function supportsInterface(bytes4 interfaceId) view returns (bool)',
  'event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender)',
  'event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender)',
  'error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)',
  'error AdminIsMissing()',
] as const;

const ERC721 = [
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function ownerOf(uint256 tokenId) view returns (address)',
  'function balanceOf(address owner) view returns (uint256)',
  'function transferFrom(address from, address to, uint256 tokenId)',
  'function approve(address to, uint256 tokenId)',
  'function setApprovalForAll(address operator, bool approved)',
  'event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)',
  'event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId)',
  'event ApprovalForAll(address indexed owner, address indexed operator, bool approved)',
  'error ERC721InvalidReceiver(address receiver)',
  'error ERC721NonexistentToken(uint256 tokenId)',
  'error ERC721InsufficientApproval(address operator, uint256 tokenId)',
] as const;

export const SIGNATURES = {
  'demo-erc721': [
    ...ROLES,
    ...ERC721,
    'constructor(address admin, string name, string symbol)',
    'struct MintByIds { address to; uint256[] tokenIds; }',
    'struct MintByQuantity { address to; uint256 quantity; }',
    'function mintBatch(MintByIds[] mints)',
    'function mintBatchByQuantity(MintByQuantity[] mints)',
    'function mintBatchByQuantityThreshold() pure returns (uint256)',
    'function burn(uint256 tokenId)',
    'function totalSupply() view returns (uint256)',
    'error TokenAlreadyMinted(uint256 tokenId)',
    'error TokenIdNotBelowThreshold(uint256 tokenId, uint256 threshold)',
    'error QuantityIsZero(address to)',
  ],
  'demo-erc1155': [
    ...ROLES,
    'constructor(address admin, string name_)',
    'function name() view returns (string)',
    'function safeMint(address to, uint256 id, uint256 value, bytes data)',
    'function safeMintBatch(address to, uint256[] ids, uint256[] values, bytes data)',
    'function burn(address from, uint256 id, uint256 value)',
    'function totalSupply(uint256 id) view returns (uint256)',
    'function balanceOf(address account, uint256 id) view returns (uint256)',
    'function safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes data)',
    'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] values, bytes data)',
    'function setApprovalForAll(address operator, bool approved)',
    'event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)',
    'event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values)',
    'error ERC1155InvalidReceiver(address receiver)',
    'error ERC1155InvalidArrayLength(uint256 idsLength, uint256 valuesLength)',
    'error ERC1155MissingApprovalForAll(address operator, address owner)',
    'error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 tokenId)',
  ],
  'demo-erc20': [
    ...ROLES,
    'constructor(address admin, string name, string symbol)',
    'function name() view returns (string)',
    'function symbol() view returns (string)',
    'function decimals() view returns (uint8)',
    'function totalSupply() view returns (uint256)',
    'function balanceOf(address account) view returns (uint256)',
    'function transfer(address to, uint256 value) returns (bool)',
    'function mint(address to, uint256 value)',
    'function burn(uint256 value)',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
    'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  ],
  'consecutive-erc721': [
    ...ERC721,
    'constructor(address to, uint96 quantity)',
    'function mint(address to, uint256 tokenId)',
    'event ConsecutiveTransfer(uint256 indexed fromTokenId, uint256 toTokenId, address indexed fromAddress, address indexed toAddress)',
    'error ERC721ExceededMaxBatchMint(uint256 batchSize, uint256 maxBatch)',
  ],
  'hostile-erc20': [
    'function mint(address to, uint256 value)',
    'function name() view returns (string)',
    'function symbol() pure',
    'function decimals() pure',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
  ],
  'log-emitter': [
    'struct Log { bytes32[] topics; bytes data; }',
    'function emitLogs(Log[] logs)',
    'function repeatLog(Log log, uint256 times)',
    'function emitAndRevert(Log log)',
    'error TooManyTopics(uint256 topics)',
    'error RevertedAsRequested()',
  ],
  'old-erc20': [
    'constructor(bytes32 name_, bytes32 symbol_)',
    'function name() view returns (bytes32)',
    'function symbol() view returns (bytes32)',
    'function mint(address to, uint256 value)',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
  ],
} as const;
