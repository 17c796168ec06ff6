from torch.nn.modules import module
