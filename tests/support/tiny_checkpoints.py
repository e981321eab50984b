"""Small random language models saved in the Hugging Face format, with real architectures and tokenizers.

To be used only if torch and transformers are installed.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

END = "<|endoftext|>"
CORPUS = ["show me a meeting", "the cat sat on the mat", "list the blocks and the meetings"] * 3
CONTEXT = 64
WINDOW = 4


def byte_level() -> Tokenizer:
    """A byte-level tokenizer like that of GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[END], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def sentence_piece() -> Tokenizer:
    """A SentencePiece tokenizer like that of Llama 2: byte fallback, a space before every text, BOS."""
    vocab = {token: i for i, token in enumerate(["<unk>", "<s>", END, *(f"<0x{b:02X}>" for b in range(256))])}
    for token in ["▁", *"abcdehlmnostw", "▁t", "▁th", "▁the", "▁▁", "at", "▁c", "▁cat"]:
        vocab[token] = len(vocab)
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e"), ("▁", "▁"), ("a", "t"), ("▁", "c"), ("▁c", "at")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.add_special_tokens(["<unk>", "<s>", END])
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def word_piece() -> Tokenizer:
    """A tokenizer whose tokens do not define their bytes."""
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "##s": 2, END: 3}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def config(kind: str, size: int) -> Any:
    """A few narrow layers, with weights large enough for every token of the context to matter."""
    import transformers as hf

    shape: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": size}
    wide: dict[str, Any] = {"initializer_range": 0.4, "eos_token_id": None, "bos_token_id": None}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64}
    heads |= {"max_position_embeddings": CONTEXT}
    if kind == "gpt2":
        return hf.GPT2Config(vocab_size=size, n_layer=2, n_embd=32, n_head=4, n_positions=CONTEXT, **wide)
    if kind == "llama":
        return hf.LlamaConfig(**shape, **heads, **wide)
    if kind == "window":
        return hf.MistralConfig(**shape, **heads, **wide, sliding_window=WINDOW)
    return hf.MambaConfig(**shape, **wide, state_size=4)


def save(folder: Path, kind: str, tokenizer: Tokenizer) -> Path:
    """Save a model of this kind and this tokenizer in a folder."""
    import torch
    import transformers as hf

    torch.manual_seed(1)
    size = tokenizer.get_vocab_size() + 5
    hf.AutoModelForCausalLM.from_config(config(kind, size)).save_pretrained(folder)
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    return folder


def edit_config(folder: Path, **changed: Any) -> None:
    """Change entries of the model's config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
