//! AES-256 in CBC mode with a random initialization vector: the functions `encryptAES` and `decryptAES`.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use mainstay_template::{Call, Failure, Value};

use crate::encoding::{decode_base64, encode_base64};

const BLOCK: usize = 16;

/// Creates the cipher. The password is truncated to the length of a key or padded with zeros.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    key.iter_mut().zip(password).for_each(|(key, byte)| *key = *byte);
    Aes256::new(&Array::from(key))
}

pub(super) fn encrypt(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (password, text) = (call.str(0), call.str(1));
    if text.is_empty() {
        return Ok("".into());
    }
    call.meter.reserve_string(2 * text.len() + 64)?;
    let cipher = cipher(&password);
    let mut previous = [0; BLOCK];
    call.host.entropy(&mut previous);
    let mut out = previous.to_vec();
    let padding = BLOCK - text.len() % BLOCK;
    let padded = [text.as_bytes(), &vec![padding as u8; padding]].concat();
    for block in padded.chunks_exact(BLOCK) {
        previous
            .iter_mut()
            .zip(block)
            .for_each(|(mixed, byte)| *mixed ^= byte);
        let mut array = Array::from(previous);
        cipher.encrypt_block(&mut array);
        previous = array.into();
        out.extend_from_slice(&previous);
    }
    Ok(encode_base64(&out).into())
}

pub(super) fn decrypt(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (password, text) = (call.str(0), call.str(1));
    if text.is_empty() {
        return Ok("".into());
    }
    call.meter.reserve_string(text.len())?;
    let bytes = decode_base64(&text).map_err(|error| Failure::message(error.to_string()))?;
    let plain = decrypt_blocks(&cipher(&password), &bytes, text.len())
        .map_err(|error| Failure::message(error.to_string()))?;
    Ok(Value::string(plain))
}

/// Error of decrypting, with the message of the Go runtime.
#[derive(Debug, thiserror::Error)]
enum DecryptError {
    #[error("runtime error: slice bounds out of range [:16] with capacity {capacity}")]
    TooShort { capacity: usize },
    #[error("crypto/cipher: input not full blocks")]
    PartialBlock,
    #[error("runtime error: index out of range [-1]")]
    Empty,
    #[error("runtime error: slice bounds out of range [:-{excess}]")]
    Padding { excess: usize },
}

/// Decrypts `bytes`. `encoded` is the number of base64 characters that they were decoded from.
fn decrypt_blocks(cipher: &Aes256, bytes: &[u8], encoded: usize) -> Result<Vec<u8>, DecryptError> {
    let Some((start, rest)) = bytes.split_first_chunk::<BLOCK>() else {
        return Err(DecryptError::TooShort {
            capacity: encoded / 4 * 3,
        });
    };
    if rest.len() % BLOCK != 0 {
        return Err(DecryptError::PartialBlock);
    }
    let mut previous = *start;
    let mut out = Vec::with_capacity(rest.len());
    for block in rest.as_chunks::<BLOCK>().0 {
        let mut array = Array::from(*block);
        cipher.decrypt_block(&mut array);
        out.extend(array.iter().zip(previous).map(|(byte, mixed)| byte ^ mixed));
        previous = *block;
    }
    let padding = usize::from(*out.last().ok_or(DecryptError::Empty)?);
    match out.len().checked_sub(padding) {
        Some(len) => out.truncate(len),
        None => {
            return Err(DecryptError::Padding {
                excess: padding - out.len(),
            });
        }
    }
    Ok(out)
}
